import Foundation
import SpoolAVFoundation

guard let url = CommandLine.arguments.dropFirst().first.flatMap({ URL(string: $0) }) else {
    fatalError("usage: MyPlayer URL")
}
let caches = FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask)[0]
let cache = MediaCache(directory: caches.appending(path: "MyPlayer"), capacity: .bytes(2 << 30))
let player = CachingPlayer(in: cache)
player.play(url)
while ![.ended, .failed].contains(player.status) {
    try await Task.sleep(for: .milliseconds(200))
}
print(player.error?.localizedDescription ?? "\(cache.statistics.bytesFromOrigin) bytes from the origin")
player.load([])
await cache.close()

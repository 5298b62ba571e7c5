import AVFoundation
import Foundation
import Spool
import SpoolAVFoundation

#if canImport(Darwin)
import Darwin
#else
import FoundationNetworking
import Glibc
#endif

/// The probes of the operating system's files and network.
enum SystemProbes {
    static let all: [Probe] = [
        Probe(20, "Which directories does a cache exclude from backups?", .system) { context in
            try Platform.backupFlags(of: try await usedDirectory(in: context))
        },
        Probe(21, "Which protection class do a cache's directory and files have?", .system) { context in
            try Platform.protectionClasses(of: try await usedDirectory(in: context))
        },
        Probe(22, "Can a range of a file be deallocated, and is it then a hole?", .system) { context in
            try holes(in: context.newDirectory().deletingLastPathComponent())
        },
        Probe(23, "Which address of localhost does the player use first?") { context in
            let item = AVPlayerItem(url: context.origin.url("/media/constant.mp3", host: "localhost"))
            let player = Platform.player(item)
            let before = context.origin.received("/media/constant.mp3").count
            let status = try await Playing.load(item)
            player.replaceCurrentItem(with: nil)
            let received = context.origin.received("/media/constant.mp3").dropFirst(before)
            guard !received.isEmpty else { return Observation("no request; \(status)") }
            let addresses = received.map { $0.isIPv6 ? "::1" : "127.0.0.1" }
            return Observation(
                "\(addresses[0]); \(status)",
                details: [
                    "all: " + addresses.joined(separator: ", "),
                    context.origin.hasIPv6 ? "the origin listens on both" : "the origin listens on 127.0.0.1 only",
                ])
        },
        Probe(24, "Does App Transport Security reject http in this process (−1022)?", .system) { _ in
            guard let url = URL(string: "http://spool-report.invalid/media.mp3") else {
                throw Unavailable("the URL is invalid")
            }
            do {
                _ = try await URLSession.shared.data(from: url)
                return Observation("no, there was a response")
            } catch {
                let code = (error as? URLError)?.code.rawValue ?? (error as NSError).code
                return Observation(code == -1022 ? "yes, −1022" : "no, the error is \(code)")
            }
        },
        Probe(25, "How many bytes does URLSession deliver after suspend()?", .system) { context in
            try await Platform.suspendOvershoot(context.origin.url("/media/long.wav"))
        },
    ]

    /// Returns the directory of a cache that contains media.
    private static func usedDirectory(in context: ProbeContext) async throws -> URL {
        let directory = context.newDirectory()
        let cache = MediaCache(directory: directory)
        _ = try await cache.media(for: context.origin.url("/media/tone.wav")).data(in: 0..<1000)
        await cache.close()
        return directory
    }

    private static func holes(in directory: URL) throws -> Observation {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let file = directory.appending(path: "holes")
        try Data(repeating: 1, count: 1 << 20).write(to: file)
        let descriptor = open(file.path, O_RDWR)
        guard descriptor >= 0 else { throw POSIXError(.EIO) }
        defer { close(descriptor) }
        func blocks() -> Int {
            var status = stat()
            return fstat(descriptor, &status) == 0 ? Int(status.st_blocks) : -1
        }
        _ = fsync(descriptor)
        let before = blocks()
        let isDeallocated = Platform.punchHole(in: descriptor, 65536..<524_288)
        _ = fsync(descriptor)
        let hole = Platform.seekHole(in: descriptor, from: 0)
        return Observation(
            isDeallocated ? "yes" : "no, the error is \(errno)",
            details: ["blocks of 512 bytes: \(before) before, \(blocks()) after", "first hole at \(hole)"])
    }
}

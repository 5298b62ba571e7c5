import Foundation
import Spool
import SpoolProxy
import SpoolTesting
import Testing

/// Tests of real players that play a stream through a real server while ffmpeg creates it, with nginx as the origin.
@Suite(.serialized, .timeLimit(.minutes(10)), .enabled(if: Players.areAllWanted, "only make test-players uses them"))
struct LiveTests {
    @Test(
        .enabled(if: Players.nginx != nil && Players.ffmpeg != nil, "nginx or ffmpeg is not installed"),
        arguments: LiveStream.Form.allCases)
    func `Players that join a live stream play it to its end concurrently`(form: LiveStream.Form) async throws {
        let nginx = try #require(Players.nginx)
        let players = Players.all
        try await LiveStream.run(form) { stream in
            try await nginx.run(stream.folder) { url in
                try await PlayerStage.run { server, cache in
                    let played = try #require(server.url(for: url.appending(path: LiveStream.playlist)))
                    await withTaskGroup(of: String?.self) { group in
                        for (name, player) in players {
                            group.addTask {
                                do {
                                    try await player.play(played, PlayPlan())
                                    return nil
                                } catch {
                                    return "\(name): \(error)"
                                }
                            }
                        }
                        for await failure in group where failure != nil { Issue.record("\(failure ?? "")") }
                    }
                    let last = try #require(try stream.lastSegment())
                    let stored = try await cache.storedResources()
                    #expect(stored.contains { $0.redactedURL.hasSuffix("/" + last) && $0.isComplete })
                    #expect(!stored.contains { $0.redactedURL.hasSuffix(LiveStream.playlist) && !$0.isComplete })
                }
            }
        }
    }
}

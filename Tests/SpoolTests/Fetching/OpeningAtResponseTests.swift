import Foundation
import HTTPTypes
import SpoolTesting
import Testing

@testable import Spool
@testable import SpoolScheduling

/// Readers that open while the origin's first response is being evaluated.
@Suite(.timeLimit(.minutes(5))) struct OpeningAtResponseTests {
    /// Returns a response without validators or a lifetime, so that an unconfirmed version is always validated.
    private static func respond(to request: UpstreamRequest) -> ScriptedUpstream.Response {
        var head = HTTPResponse(status: .ok)
        head.headerFields[.contentType] = "text/plain"
        head.headerFields[.contentLength] = "36"
        return .init(head, .data(Data(repeating: 0x61, count: 36)))
    }

    @Test("E139: a reader that opens as soon as a response's version is current does not send a second request")
    func opensAsSoonAsCurrent() async throws {
        let stage = try MemoryStage([:], freshness: .http)
        try await stage.session { cache in
            for round in 0..<300 {
                stage.origin.script("/\(round)") { request, _ in Self.respond(to: request) }
                let media = cache.media(for: MediaSource(url: stage.url("/\(round)")))
                let resource = try await media.opened()
                let early = Self.onThread {
                    // The loop does not pause, so that the reader opens within the few microseconds in which the
                    // version becomes current.
                    while resource.generation == nil {}
                    let reader = media.openReader(at: 0, end: nil, priority: .playback, in: resource)
                    let mustWait = resource.scheduler.inspect { $0.machine.needsValidation }
                    resource.readers.close(reader.id)
                    return mustWait
                }
                let reader = media.reader()
                #expect(try await reader.next()?.data.count == 36)
                #expect(try await reader.next() == nil)
                #expect(await !early.value, "round \(round)")
                #expect(stage.origin.log.exchanges.count { $0.path == "/\(round)" } == 1, "round \(round)")
            }
        }
    }

    /// Runs `body`, which may block, on a separate thread.
    private static func onThread<R: Sendable>(_ body: @escaping @Sendable () -> R) -> Task<R, Never> {
        Task {
            await withCheckedContinuation { continuation in
                Thread.detachNewThread { continuation.resume(returning: body()) }
            }
        }
    }
}

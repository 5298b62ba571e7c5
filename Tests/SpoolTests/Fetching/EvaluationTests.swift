import Foundation
import Logging
import SpoolTesting
import Synchronization
import Testing

@testable import Spool

@Suite("Response evaluation", .timeLimit(.minutes(10)))
struct EvaluationTests {
    @Test("Two concurrent responses with the same new validator create only one version")
    func oneSuccessor() async throws {
        let changed = PatternBytes(seed: 2, length: 30_000_000)
        let arrived = AsyncStream.makeStream(of: Void.self)
        let mayGoOn = DispatchSemaphore(value: 0)
        let changes = Mutex(0)
        let stage = try MemoryStage(["/a": .pattern(30_000_000)]) { configuration in
            configuration.logger = Logger(label: "spool.tests") { _ in
                HookedLog { message in
                    guard message.contains("changed") else { return }
                    let count = changes.withLock { changes in
                        changes += 1
                        return changes
                    }
                    // The first response is being evaluated.
                    guard count == 1 else { return }
                    arrived.continuation.finish()
                    mayGoOn.wait()
                }
            }
        }
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.bytes(0..<60_000), PatternBytes(length: 30_000_000))
        }
        stage.origin.update("/a") {
            $0.content = .pattern(changed)
            $0.etag = "\"v2\""
        }
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            let resource = try await media.opened()
            let readers = [10_000_000, 25_000_000].map { start in
                Task { try await media.check(.bytes(start..<start + 1000), changed, covers: start..<start + 1000) }
            }
            for await _ in arrived.stream {}
            while resource.evaluation.waiterCount(resource.key) == 0, changes.withLock({ $0 }) == 1 {
                await Task.yield()
            }
            #expect(changes.withLock { $0 } == 1)
            mayGoOn.signal()
            for reader in readers { try await reader.value }
            #expect(changes.withLock { $0 } == 1)
        }
    }
}

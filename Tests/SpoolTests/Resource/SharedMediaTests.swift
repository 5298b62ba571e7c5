import Foundation
import HTTPTypes
import SpoolOrigin
import SpoolTesting
import Testing

@testable import Spool

@Suite("Requests whose fields differ in what selects nothing", .timeLimit(.minutes(10)))
struct SharedMediaTests {
    private static let length: Int64 = 1_000_000

    private func source(_ stage: MemoryStage, agent: String, _ language: String = "de") -> MediaSource {
        MediaSource(url: stage.url(), headerFields: [.userAgent: agent, .acceptLanguage: language])
    }

    /// What as many sources read at once, each as the proxy would: the first one has asked when the others come, and the
    /// origin responds when all have begun.
    private func read(_ stage: MemoryStage, _ sources: [MediaSource]) async throws {
        try await stage.session { cache in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (index, source) in sources.enumerated() {
                    group.addTask {
                        let media = try await cache.sharedMedia(for: source)
                        var position: Int64 = 0
                        for try await chunk in media.reader() {
                            #expect(chunk.offset == position)
                            try PatternBytes(seed: 1, length: Self.length).verify(chunk.data, at: position)
                            position = chunk.range.upperBound
                        }
                        #expect(position == Self.length)
                    }
                    if index == 0 { _ = try await stage.origin.log.first { $0.isStalled } }
                }
                stage.origin.update("/a") { $0.rules.removeFirst() }
                stage.origin.release()
                try await group.waitForAll()
            }
            await cache.waitUntilIdle()
            #expect(cache.leaseCount == 0)
        }
    }

    private func stage(_ fields: OriginBehaviour...) throws -> MemoryStage {
        let stage = try MemoryStage(["/a": .pattern(Self.length, .stall(after: nil))], freshness: .http)
        stage.origin.update("/a") { $0.rules += fields.map { .always($0) } }
        return stage
    }

    @Test("E91: where nothing selects, five agents that ask at once have each byte brought once")
    func once() async throws {
        let stage = try stage(.field("Cache-Control", "max-age=1000"))
        try await read(stage, (0..<5).map { source(stage, agent: "agent \($0)") })
        #expect(stage.origin.log.bytesSent() == Self.length)
    }

    @Test("E91: where the language selects, each language is asked for once, whatever the agent")
    func selecting() async throws {
        let stage = try stage(.field("Cache-Control", "max-age=1000"), .field("Vary", "Accept-Language"))
        try await read(stage, (0..<6).map { source(stage, agent: "agent \($0)", $0 < 3 ? "de" : "fr") })
        #expect(stage.origin.log.bytesSent() == 2 * Self.length)
    }

    @Test("E91: what fails for one is asked for by the next one for himself, and is asked for once each")
    func failing() async throws {
        let stage = try stage(.status(403))
        try await stage.session { cache in
            let first = source(stage, agent: "one")
            let second = source(stage, agent: "two")
            let asking = Task { try await cache.sharedMedia(for: first).data(in: 0..<10) }
            _ = try await stage.origin.log.first { $0.isStalled }
            let waiting = Task { try await cache.sharedMedia(for: second).data(in: 0..<10) }
            stage.origin.update("/a") { $0.rules.removeFirst() }
            stage.origin.release()
            for task in [asking, waiting] { await #expect(throws: CacheError.self) { try await task.value } }
            #expect(stage.origin.log.exchanges.map { $0.headerFields[.userAgent] } == ["one", "two"])
        }
    }

    @Test("E91: what must not be stored is nobody else's")
    func unstored() async throws {
        let stage = try stage(.field("Cache-Control", "no-store"))
        try await read(stage, (0..<2).map { source(stage, agent: "agent \($0)") })
        #expect(stage.origin.log.bytesSent() == 2 * Self.length)
    }
}

import Foundation
import HTTPRanges
import HTTPTypes
import SpoolOrigin
import SpoolTesting
import Synchronization
import Testing

@testable import Spool

@Suite("Requests that differ only in fields that do not select a variant", .timeLimit(.minutes(10)))
struct SharedMediaTests {
    private static let length: Int64 = 1_000_000

    private func source(_ stage: MemoryStage, agent: String, _ language: String = "de") -> MediaSource {
        MediaSource(url: stage.url(), headerFields: [.userAgent: agent, .acceptLanguage: language])
    }

    /// Reads all sources concurrently, as the proxy server does.
    ///
    /// The other readers start after the first reader's request, and the origin responds once all readers have started.
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

    private func stage(_ fields: OriginBehavior...) throws -> MemoryStage {
        let stage = try MemoryStage(["/a": .pattern(Self.length, .stall(after: nil))], freshness: .http)
        stage.origin.update("/a") { $0.rules += fields.map { .always($0) } }
        return stage
    }

    @Test("E91: for five concurrent user agents, each byte of a response without Vary is fetched once")
    func once() async throws {
        let stage = try stage(.field("Cache-Control", "max-age=1000"))
        try await read(stage, (0..<5).map { source(stage, agent: "agent \($0)") })
        #expect(stage.origin.log.bytesSent() == Self.length)
    }

    @Test("E91: if responses vary by language, each language is fetched once for all user agents")
    func selecting() async throws {
        let stage = try stage(.field("Cache-Control", "max-age=1000"), .field("Vary", "Accept-Language"))
        try await read(stage, (0..<6).map { source(stage, agent: "agent \($0)", $0 < 3 ? "de" : "fr") })
        #expect(stage.origin.log.bytesSent() == 2 * Self.length)
    }

    @Test("E91: after one client's request fails, the next client sends its own request, once")
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

    @Test("E91: a response that must not be stored is not shared")
    func unstored() async throws {
        let stage = try stage(.field("Cache-Control", "no-store"))
        try await read(stage, (0..<2).map { source(stage, agent: "agent \($0)") })
        #expect(stage.origin.log.bytesSent() == 2 * Self.length)
    }

    @Test("E92: if a response may not be shared, the waiting clients send their requests concurrently")
    func waitingOnce() async throws {
        let stage = try stage(.field("Cache-Control", "no-store"))
        let number = 4
        try await stage.session { cache in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<number {
                    let source = source(stage, agent: "agent \(index)")
                    group.addTask { _ = try await cache.sharedMedia(for: source).data(in: 0..<10) }
                    if index == 0 { _ = try await stage.origin.log.first { $0.isStalled } }
                }
                let first = try #require(cache.resources.open.first)
                while first.turns.state.withLock({ $0.waits.count }) < number - 1 { await Task.yield() }
                // The origin also delays the responses to later requests, but no client waits for another client's
                // request.
                stage.origin.release()
                for index in 1..<number {
                    let agent = "agent \(index)"
                    _ = try await stage.origin.log.first { $0.isStalled && $0.headerFields[.userAgent] == agent }
                }
                stage.origin.update("/a") { $0.rules.removeFirst() }
                stage.origin.release()
                try await group.waitForAll()
            }
        }
    }

    /// Calls `body` while a client with the user agent `one` reads a response that is fresh for 1,000 seconds.
    private func whileReading(_ body: (MemoryStage, MediaCache, MediaReader) async throws -> Void) async throws {
        let stage = try MemoryStage(["/a": .pattern(Self.length)], freshness: .http)
        stage.origin.update("/a") { $0.rules = [.always(.field("Cache-Control", "max-age=1000"))] }
        try await stage.session { cache in
            let reader = try await cache.sharedMedia(for: source(stage, agent: "one")).reader(in: 0..<Self.length)
            _ = try await reader.next()
            await cache.waitUntilIdle()
            try await body(stage, cache, reader)
        }
    }

    @Test("E339: a different version for other header fields does not end a reader of the stored version")
    func otherVersion() async throws {
        try await whileReading { stage, cache, reader in
            stage.origin.script("/a") { request, _ in
                guard request.headerFields[.userAgent] == "two" else { return nil }
                let fields: HTTPFields = [.eTag: "\"other\"", .contentLength: "10", .cacheControl: "max-age=1000"]
                return ScriptedUpstream.Response(
                    HTTPResponse(status: .ok, headerFields: fields), .data(Data(repeating: 7, count: 10)))
            }
            let directives = RequestDirectives(fields: [.cacheControl: "no-cache"])
            let other = try await cache.sharedMedia(for: source(stage, agent: "two"), directives: directives)
            #expect(try await other.confirmed(directives, priority: .playback) == nil)
            var received: [UInt8] = []
            for try await chunk in other.reader(directives: directives) { received += chunk.data }
            #expect(received == Array(repeating: 7, count: 10))
            var position: Int64?
            for try await chunk in reader { position = chunk.range.upperBound }
            #expect(position == Self.length)
        }
    }

    @Test("E342: a 304 to a client with different header fields also updates the stored response")
    func confirmedForOther() async throws {
        try await whileReading { stage, cache, reader in
            stage.origin.update("/a") { $0.rules = [.always(.field("Cache-Control", "max-age=0"))] }
            let directives = RequestDirectives(fields: [.cacheControl: "no-cache"])
            let other = try await cache.sharedMedia(for: source(stage, agent: "two"), directives: directives)
            #expect(try await other.confirmed(directives, priority: .playback) != nil)
            let requests = stage.origin.log.exchanges.count
            let third = try await cache.sharedMedia(for: source(stage, agent: "three"))
            _ = try await third.confirmed(RequestDirectives(), priority: .playback)
            #expect(stage.origin.log.exchanges.count == requests + 1)
            for try await _ in reader {}
        }
    }

    @Test("E92: a client that shares another client's resource sends requests with the other client's header fields")
    func ownersFields() async throws {
        let stage = try MemoryStage(["/a": .pattern(Self.length)], freshness: .http)
        stage.origin.update("/a") { $0.rules = [.always(.field("Cache-Control", "max-age=1000"))] }
        try await stage.session { cache in
            let first = try await cache.sharedMedia(for: source(stage, agent: "one"))
            _ = try await first.data(in: 0..<10)
            let second = try await cache.sharedMedia(for: source(stage, agent: "two"))
            #expect(second.isShared)
            stage.origin.update("/a") { $0.rules.append(.always(.field("Vary", "User-Agent"))) }
            let reader = second.reader(in: 900_000..<900_010)
            _ = try await reader.next()
            #expect(stage.origin.log.exchanges.allSatisfy { $0.headerFields[.userAgent] == "one" })
            let response = try await second.response().response
            #expect(!response.mayBeShared(with: source(stage, agent: "two"), .init(), at: 0))
        }
    }

    @Test(
        "E119: a response in progress is not shared if it may not be used without a revalidation",
        arguments: [nil, "no-cache", "max-age=0", "no-cache, must-revalidate"] as [String?], [true, false])
    func notReusable(_ control: String?, _ hasTag: Bool) async throws {
        let stage = try MemoryStage([:], freshness: .http)
        let token = try #require(HTTPField.Name("X-Emby-Token"))
        let patterns = (1...2).map { PatternBytes(seed: UInt64($0), length: 3_000_000) }
        stage.origin.script("/a") { request, _ in
            let isAlice = request.headerFields[token] == "alice"
            var head = HTTPResponse(status: .ok)
            head.headerFields[.cacheControl] = control
            head.headerFields[.contentLength] = "3000000"
            if hasTag { head.headerFields[.eTag] = isAlice ? "\"alice\"" : "\"bob\"" }
            return .init(head, .pattern(patterns[isAlice ? 0 : 1]))
        }
        func source(_ user: String) -> MediaSource { MediaSource(url: stage.url(), headerFields: [token: user]) }
        try await stage.session { cache in
            let alice = try await cache.sharedMedia(for: source("alice")).reader()
            try await alice.check(patterns[0], upTo: 300_000)
            let bob = try await cache.sharedMedia(for: source("bob"))
            #expect(!bob.isShared)
            #expect(try await bob.reader().check(patterns[1]) == 3_000_000)
            #expect(try await alice.check(patterns[0]) == 3_000_000)
        }
    }

    @Test("E119: a client that requires validation does not share another client's fresh response")
    func requestDirectives() async throws {
        let stage = try stage(.field("Cache-Control", "max-age=1000"))
        stage.origin.update("/a") { $0.rules.removeFirst() }
        try await stage.session { cache in
            let first = try await cache.sharedMedia(for: source(stage, agent: "one"))
            _ = try await first.data(in: 0..<10)
            for directives in [RequestDirectives(fields: [.cacheControl: "no-cache"]), .init()] {
                let second = try await cache.sharedMedia(for: source(stage, agent: "one"), directives: directives)
                #expect(second.usesOthersResponse == !directives.noCache)
            }
        }
    }

    @Test("E119: if a client leaves early, the next client gets the response to the same request")
    func abandoned() async throws {
        let stage = try stage(.field("Cache-Control", "no-cache"))
        try await stage.session { cache in
            let turn = OriginTurn()
            let first = try await cache.sharedMedia(for: source(stage, agent: "one"), turn: turn)
            async let late = first.reader().response()
            _ = try await stage.origin.log.first { $0.isStalled }
            turn.end()
            let second = try await cache.sharedMedia(for: source(stage, agent: "one"))
            async let head = second.reader().response()
            stage.origin.update("/a") { $0.rules.removeFirst() }
            while first.resource?.activity.readers ?? 0 < 2 { await Task.yield() }
            stage.origin.release()
            _ = try await (late, head)
            #expect(stage.origin.log.exchanges.count == 1)
        }
    }

    @Test("E119: a request that is repeated after an error does not wait for its own turn to end")
    func asksAgain() async throws {
        let stage = try stage(.field("Cache-Control", "no-cache"))
        try await stage.session { cache in
            let turn = OriginTurn()
            let first = try await cache.sharedMedia(for: source(stage, agent: "one"), turn: turn)
            let again = try await cache.sharedMedia(for: source(stage, agent: "one"), turn: turn)
            #expect(again.resource === first.resource)
            #expect(!again.usesOthersResponse)
        }
    }

    @Test("E119: if the requesting client leaves, one waiting client sends a request, and the others share it")
    func leaves() async throws {
        let stage = try stage(.field("Cache-Control", "max-age=1000"))
        stage.origin.update("/a") { $0.rules.removeFirst() }
        try await stage.session { cache in
            let turn = OriginTurn()
            let first = try await cache.sharedMedia(for: source(stage, agent: "one"), turn: turn)
            let waiting = (0..<3).map { _ in
                Task { try await cache.sharedMedia(for: source(stage, agent: "one")).data(in: 0..<10) }
            }
            while first.resource?.turns.state.withLock({ $0.waits.count }) ?? 0 < 3 { await Task.yield() }
            turn.end()
            for client in waiting { #expect(try await client.value.count == 10) }
            #expect(stage.origin.log.exchanges.count == 1)
        }
    }

    @Test("E119: clients do not wait for another client's no-store request, and their response is stored")
    func noStoreTakesNoTurn() async throws {
        let stage = try stage(.field("Cache-Control", "max-age=1000"))
        try await stage.session { cache in
            let directives = RequestDirectives(fields: [.cacheControl: "no-store"])
            let unstored = try await cache.sharedMedia(for: source(stage, agent: "one"), directives: directives)
            #expect(unstored.resource?.separate != nil)
            let second = try await cache.sharedMedia(for: source(stage, agent: "one"))
            #expect(second.resource?.separate == nil)
        }
    }
}

import Foundation
import HTTPTypes
import NIOPosix
import SpoolTesting
import Testing

/// Random valid and invalid requests to `spool serve` over real sockets, with a real origin.
///
/// `SPOOL_PROXY_REQUESTS` sets the number of requests, `SPOOL_PROXY_SEED` the first seed, and
/// `SPOOL_PROXY_CONNECTIONS` the number of concurrent connections.
@Suite(.serialized, .timeLimit(.minutes(60))) struct AdversarialRequestTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let count = environment["SPOOL_PROXY_REQUESTS"].flatMap { Int($0) } ?? 3000
    private static let connections = environment["SPOOL_PROXY_CONNECTIONS"].flatMap { Int($0) } ?? 8
    private static let seed = environment["SPOOL_PROXY_SEED"].flatMap { UInt64($0) } ?? 1

    /// The kind of access for which the server is configured.
    enum Form: String, CaseIterable, Sendable {
        case forward, token, reverse
    }

    private static func origin() throws -> [String: OriginResource] {
        var resources: [String: OriginResource] = [:]
        for media in AdversarialMedia.all {
            let date = Date(timeIntervalSince1970: 1_604_397_600)
            var resource = OriginResource(
                .pattern(media.pattern), etag: media.tag, lastModified: date, contentType: "video/mp4")
            resource.headerFields[.cacheControl] = "max-age=86400"
            resources[media.path] = resource
        }
        return resources
    }

    @Test(arguments: Form.allCases)
    func `Every response to a random request is one that a strict client accepts`(form: Form) async throws {
        let scratch = try ScratchDirectory()
        try await OriginServer.run(try Self.origin()) { origin in
            let token = "s3cret-token"
            let arguments: [String] =
                switch form {
                case .forward: []
                case .token: ["--token", token]
                case .reverse: ["--origin", "http://127.0.0.1:\(origin.port)/"]
                }
            let server = try await ServerProcess.start(arguments, cache: scratch.file("cache"))
            defer { server.kill() }
            let target = AdversarialTarget(
                port: server.port, originPort: origin.port, token: form == .token ? token : nil,
                isReverse: form == .reverse)
            try await warm(target)
            let half = Self.count / Form.allCases.count / 2
            let first = await run(half, from: Self.seed &* 1_000_003, target)
            let heard = try await problems(heardBy: origin, target)
            let (sockets, memory) = (try await sockets(of: server, target, atMost: nil), server.memory)
            let files = server.fileCount
            let second = await run(half, from: Self.seed &* 1_000_003 &+ 1 << 40, target)
            let all = try await first.problems + second.problems + heard + problems(heardBy: origin, target)
            for problem in all.prefix(10) { Issue.record("\(problem)") }
            #expect(server.isRunning)
            let socketsAtEnd = try await self.sockets(of: server, target, atMost: sockets + 16)
            #expect(socketsAtEnd <= sockets + 16)
            #expect(server.memory <= memory + 64 << 10)
            #expect(server.fileCount <= files + 64)
            print(
                "hostile \(form.rawValue): \(first.requests + second.requests) requests, \(first.responses + second.responses) responses, \(sockets) then \(socketsAtEnd) sockets, \(files) then \(server.fileCount) files, \(memory) then \(server.memory) KiB"
            )
            let end = await server.stop()
            #expect(end.status == 0, "\(end.text)")
            let verified = try await ServerProcess.spool.run(["verify", "--cache", scratch.file("cache")])
            #expect(verified.status == 0, "\(verified.text)")
        }
    }

    @Test func `A connection uses no memory for completed requests`() async throws {
        let scratch = try ScratchDirectory()
        let server = try await ServerProcess.start([], cache: scratch.file("cache"))
        defer { server.kill() }
        // With this length, a request usually ends in the middle of a read from the socket.
        let field = "X-Long: \(String(repeating: "v", count: 31_000))\r\n"
        let request = "GET /.spool/health HTTP/1.1\r\nHost: localhost\r\n\(field)"
        let last = request + "Connection: close\r\n\r\n"
        let all = String(repeating: request + "\r\n", count: 400) + last
        _ = try await RawConnection.exchange(last, port: server.port)
        let memory = server.memory
        let bytes = try await RawConnection.exchange(all, port: server.port)
        let count = String(decoding: bytes, as: UTF8.self).components(separatedBy: "HTTP/1.1 200 OK\r\n").count - 1
        #expect(count == 401)
        #expect(server.memory < memory + 8 << 10)
        #expect(await server.stop().status == 0)
    }

    /// Requests all media, so that the cache responds to conditions and to `HEAD`.
    private func warm(_ target: AdversarialTarget) async throws {
        let origin = target.isReverse ? "" : "/http/127.0.0.1:\(target.originPort)"
        let prefix = target.token.map { "/~" + $0 } ?? ""
        for media in AdversarialMedia.all {
            let response = try await RawConnection.exchange(
                "GET \(prefix)\(origin)\(media.path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                port: target.port)
            try #require(response.starts(with: Array("HTTP/1.1 200 OK\r\n".utf8)))
        }
    }

    /// Returns descriptions of what is wrong with the requests that the origin received, and clears its log.
    private func problems(heardBy origin: OriginServer, _ target: AdversarialTarget) async throws -> [String] {
        try await origin.log.waitUntilIdle()
        let heard = origin.log.exchanges
        origin.log.clear()
        return heard.compactMap { AdversarialDraft.problem(of: $0, target) }
    }

    /// Returns the lowest observed number of open sockets in the server.
    ///
    /// This function sends requests until the number is at most `limit`, because the server closes connections shortly
    /// after their clients do. Without a limit, it sends 200 requests.
    private func sockets(of server: ServerProcess, _ target: AdversarialTarget, atMost limit: Int?) async throws -> Int
    {
        var lowest = Int.max
        for _ in 0..<200 {
            let farewell = String(decoding: AdversarialRequest.farewell(for: target).bytes, as: UTF8.self)
            _ = try await RawConnection.exchange(farewell, port: target.port)
            lowest = min(lowest, server.socketCount)
            if let limit, lowest <= limit { break }
        }
        return lowest
    }

    private struct Found: Sendable {
        var requests = 0
        var responses = 0
        var problems: [String] = []
    }

    /// Runs concurrent sessions until `count` requests have been created.
    private func run(_ count: Int, from seed: UInt64, _ target: AdversarialTarget) async -> Found {
        var found = Found()
        var next = seed
        await withTaskGroup(of: AdversarialSession.Outcome.self) { group in
            func add() {
                guard found.requests < count, found.problems.count < 10 else { return }
                let session = AdversarialSession(seed: next, for: target)
                next &+= 1
                found.requests += session.requests.count
                group.addTask { await session.run(on: .singleton) }
            }
            for _ in 0..<Self.connections { add() }
            while let outcome = await group.next() {
                found.responses += outcome.responses
                if let problem = outcome.problem { found.problems.append(problem) }
                add()
            }
        }
        return found
    }
}

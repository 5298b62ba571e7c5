import Foundation
import Spool
import SpoolTesting
import Synchronization

@testable import SpoolProxy

/// A run of requests to a reverse proxy of a ``SharingOrigin``, determined by a seed.
///
/// Requests overlap, because the run chooses at random when to send a request and when the origin sends each part of a
/// response. The order of events in the server also depends on its threads, so a seed reproduces the requests, but not
/// always the result.
final class SharingRun: Sendable {
    /// The combined result of runs.
    struct Result: Sendable {
        var requests = 0
        var responses = 0
        /// The number of responses that the server truncated, because the origin sent a different version before the
        /// end.
        var truncated = 0
        var originRequests = 0
        /// The number of responses whose bytes the origin sent for another request.
        var shared = 0
        /// The number of media resources, each counted once for each set of credentials with which it was requested.
        var media = 0
        var problems: [String] = []

        mutating func add(_ other: Result) {
            requests += other.requests
            responses += other.responses
            truncated += other.truncated
            originRequests += other.originRequests
            shared += other.shared
            media += other.media
            problems += other.problems
        }
    }

    private struct Finished: Sendable {
        let request: SharingRequest
        let client: Int
        let outcome: Swift.Result<SharingClient.Outcome, any Error>

        /// Whether the client received the whole response.
        var isComplete: Bool {
            if case .success(.complete) = outcome { true } else { false }
        }

        /// The number of the response whose fields the client received together with the whole body; otherwise `nil`.
        var receivedResponse: Int? {
            guard case .success(.complete(let response)) = outcome else { return nil }
            return response["x-stamp"].flatMap { Int($0) }
        }
    }

    /// A request that was sent.
    private struct Sent {
        let request: SharingRequest
        let client: Int
        let time: Int
        /// The numbers of the requests whose responses were received before this request was sent.
        let completed: Set<Int>
        /// The numbers of the responses whose fields clients had received before this request was sent.
        let received: Set<Int>
        var hasLeft = false
    }

    private let seed: UInt64
    private let requests: [SharingRequest]
    private let origin: SharingOrigin
    private let signals: AsyncStream<Void>
    private let signal: AsyncStream<Void>.Continuation
    private let finished = Mutex<[Finished]>([])

    static let clientCount = 8

    init(seed: UInt64, count: Int) {
        self.seed = seed
        var random = SplitMix(seed)
        let pages = (0..<4 + random.below(8)).map { SharedPage.draw($0, &random) }
        let users = 2 + random.below(4)
        requests = (0..<count).map { .draw($0, of: pages, users: users, &random) }
        let (signals, signal) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        (self.signals, self.signal) = (signals, signal)
        origin = SharingOrigin(pages: pages, seed: random.next()) { signal.yield() }
    }

    func run() async throws -> Result {
        var configuration = ProxyConfiguration()
        configuration.origin = URL(string: "http://origin.example/")
        let now: @Sendable () -> Date = { [origin] in Date(timeIntervalSince1970: Double(origin.now)) }
        return try await ProxyServer.run(
            configuration, clock: ManualClock(), now: now, upstream: origin
        ) { server, _ in
            guard let port = server.port else { return Result(problems: ["the server does not listen"]) }
            let clients = (0..<Self.clientCount).map { _ in SharingClient(port: port) }
            return await drive(clients)
        }
    }

    private func drive(_ clients: [SharingClient]) async -> Result {
        var random = SplitMix(seed ^ 0xABCD)
        var result = Result(requests: requests.count)
        var idle = Array(clients.indices)
        var running: [Int: Sent] = [:]
        var (next, limit) = (0, 4)
        var (completed, received) = (Set<Int>(), Set<Int>())
        var signals = signals.makeAsyncIterator()
        await withTaskGroup(of: Void.self) { group in
            while next < requests.count || !running.isEmpty {
                for done in finished.withLock({ finished in
                    defer { finished = [] }
                    return finished
                }) {
                    idle.append(done.client)
                    if done.isComplete { completed.insert(done.request.number) }
                    if let serial = done.receivedResponse { received.insert(serial) }
                    if let sent = running.removeValue(forKey: done.request.number) {
                        check(done, sent, &result)
                    }
                }
                if random.chance(20) { limit = 1 + random.below(clients.count) }
                if random.chance(25) { origin.advance(by: random.pick([1, 2, 5, 20])) }
                if next == requests.count { origin.openUp() }
                let maySend = next < requests.count && running.count < limit
                if maySend, origin.heldCount == 0 || random.chance(2) {
                    let request = requests[next]
                    let client = idle.remove(at: random.below(idle.count))
                    next += 1
                    running[request.number] = Sent(
                        request: request, client: client, time: origin.now, completed: completed,
                        received: received)
                    group.addTask { await self.exchange(request, clients[client], client) }
                } else if origin.heldCount > 0 {
                    origin.release(&random)
                } else if !running.isEmpty {
                    await signals.next()
                }
                let leaving = running.values.first { $0.request.mayLeave && !$0.hasLeft }
                if let leaving, random.chance(4) {
                    running[leaving.request.number]?.hasLeft = true
                    clients[leaving.client].leave()
                }
            }
        }
        for client in clients { client.leave() }
        checkMedia(&result)
        result.originRequests = origin.records.count
        return result
    }

    private func exchange(_ request: SharingRequest, _ client: SharingClient, _ number: Int) async {
        let text = request.text(to: origin.pages[request.page].path)
        let outcome: Swift.Result<SharingClient.Outcome, any Error>
        do {
            outcome = .success(try await client.exchange(text, isHead: request.method == "HEAD"))
        } catch {
            outcome = .failure(error)
        }
        finished.withLock { $0.append(Finished(request: request, client: number, outcome: outcome)) }
        signal.yield()
    }

    // MARK: Checks

    private func check(_ done: Finished, _ sent: Sent, _ result: inout Result) {
        func report(_ problem: String) {
            result.problems.append(
                "seed \(seed), request \(done.request.number), sent at \(sent.time) (\(done.request)): \(problem)")
        }
        let response: StrictResponseReader.Response
        switch done.outcome {
        case .failure(let error): return report("\(error)")
        case .success(.complete(let whole)):
            response = whole
            result.responses += 1
        case .success(.cut(let bytes)):
            if !sent.hasLeft { result.truncated += 1 }
            guard let start = Self.start(of: bytes) else { return }
            response = start
        }
        let request = done.request
        let page = origin.pages[request.page]
        if page.isMedia {
            let whole = SharingOrigin.body(0, length: page.length)
            let range = request.range ?? 0..<page.length
            let isWhole = done.isComplete || sent.hasLeft
            guard isWhole, response.status == (request.range == nil ? 200 : 206),
                response.body == Array(whole[range])
            else {
                return report("status \(response.status) with \(response.body.count) bytes")
            }
            return
        }
        let rule = SharingRule(
            requests: requests, records: origin.records, completed: sent.completed, received: sent.received)
        func record(_ text: Substring?) -> SharingRecord? {
            text.flatMap { Int($0) }.flatMap { serial in rule.records.first { $0.serial == serial } }
        }
        if let cookie = response["set-cookie"] {
            guard let record = record(cookie.dropFirst("from=".count)) else {
                return report("an unknown cookie")
            }
            if let reason = rule.violation(cookieOf: record, for: request, sent: sent.time) {
                report("the cookie of \(record): \(reason)")
            }
        }
        guard let stamp = response["x-stamp"] else {
            if response.status != 504 || request.control != "only-if-cached" {
                report("status \(response.status): \(String(decoding: response.body.prefix(300), as: UTF8.self))")
            }
            return
        }
        guard let head = record(stamp[...]) else { return report("an unknown stamp") }
        if let reason = rule.violation(head, for: request, sent: sent.time) {
            report("the fields of \(head): \(reason)")
        }
        guard !response.body.isEmpty else { return }
        let serial = SharingOrigin.serial(in: response.body)
        guard let body = rule.records.first(where: { $0.serial == serial }) else {
            return report("a body without a stamp")
        }
        let expected = page.body(body.serial)
        guard done.isComplete ? response.body == expected : expected.starts(with: response.body) else {
            return report("the bytes are not those of response \(body.serial)")
        }
        if body.call != request.number { result.shared += 1 }
        if body.representation != head.representation {
            report("the fields of \(head) with the bytes of \(body)")
        }
        if let reason = rule.violation(body, for: request, sent: sent.time) {
            report("the bytes of \(body): \(reason)")
        }
    }

    /// Returns the head and the received part of a truncated response; `nil` if the body has not started.
    private static func start(of bytes: [UInt8]) -> StrictResponseReader.Response? {
        guard let end = bytes.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
        let lines = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).split(separator: "\r\n")
        let fields = lines.dropFirst().map { line in
            let parts = line.split(separator: ": ", maxSplits: 1)
            return (name: parts[0].lowercased(), value: parts.count > 1 ? String(parts[1]) : "")
        }
        let status = lines.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) }
        let body = Array(bytes[end.upperBound...])
        // The body counts as started once its stamp, which ends with a semicolon, is complete.
        guard let status, body.contains(UInt8(ascii: ";")) else { return nil }
        return StrictResponseReader.Response(status: status, fields: fields, body: body)
    }

    /// Checks that the origin sent shareable media only once for each set of credentials.
    private func checkMedia(_ result: inout Result) {
        for (number, page) in origin.pages.enumerated() where page.isMedia {
            for fetch in origin.fetches(of: number) {
                result.media += 1
                let isOnce =
                    page.kind == .media
                    ? fetch.requests == 1 : fetch.bytes <= page.length + page.length / 10 + 8192
                if !isOnce {
                    result.problems.append(
                        "seed \(seed): \(page.path) with \(page.length) bytes for \(fetch.credentials) was fetched by "
                            + "\(fetch.requests) requests with \(fetch.bytes) bytes")
                }
            }
        }
    }
}

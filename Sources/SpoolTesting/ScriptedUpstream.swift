import Foundation
public import HTTPTypes
public import Spool
public import SpoolOrigin
import Synchronization

/// An in-memory transport that responds like an `OriginServer`, but without sockets and at a speed that the test
/// controls.
///
/// The transport uses the same ``/SpoolOrigin/OriginResource``s with the same faults, and the same
/// ``/SpoolOrigin/OriginLog``, in which a delivered byte counts as sent. Bodies are delivered in pieces, as the reader
/// requests them. With ``Delivery/manual``, only the bytes that the test has allowed are delivered. The transport does
/// not follow redirects, and has neither timeouts nor a connection limit per host. It selects resources only by the
/// path of the URL, and may be used from any task.
///
/// ```swift
/// let upstream = ScriptedUpstream(["/song.mp3": .pattern(1_000_000)], delivery: .manual)
/// …                                        // the code opens http://any.host/song.mp3
/// upstream.deliver(4096, of: "/song.mp3")  // the first page is received
/// upstream.fail("/song.mp3", UpstreamError(.connectionLost, "the connection was reset"))
/// ```
public final class ScriptedUpstream: Upstream {
    /// The mode that determines when bytes are delivered.
    #if hasAttribute(nonexhaustive)
    @nonexhaustive
    #endif
    public enum Delivery: Sendable {
        /// Bytes are delivered immediately when the reader requests them.
        case immediate
        /// Bytes are delivered when the test allows them with ``ScriptedUpstream/deliver(_:of:)``.
        case manual
    }

    /// A scripted response to one request. It is sent instead of the normal response.
    public struct Response: Sendable {
        /// The complete headers, with the status.
        public var head: HTTPResponse
        /// The bytes from which the body is taken.
        public var content: OriginContent
        /// The half-open range of `content` that the body consists of, or `nil` for all of it.
        public var body: Range<Int64>?
        /// The error that the body throws instead of ending normally, or `nil` for a normal end.
        public var failure: UpstreamError?

        /// Creates a response from its parts.
        public init(
            _ head: HTTPResponse, _ content: OriginContent, body: Range<Int64>? = nil, failure: UpstreamError? = nil
        ) {
            self.head = head
            self.content = content
            self.body = body
            self.failure = failure
        }
    }

    /// A function that decides the response to one request. It returns a response, or `nil` for the resource's
    /// response, or throws an error to simulate a request without a response.
    public typealias Script = @Sendable (_ request: UpstreamRequest, _ index: Int) async throws -> Response?

    private struct State {
        var scripts: [String: Script] = [:]
        var flows: [Int: ScriptedFlow] = [:]
        var isReachable = true
    }

    private let originState: OriginState
    private let delivery: Delivery
    private let pieceSize: Int
    private let state = Mutex(State())

    /// Creates a transport that serves `resources` by path.
    ///
    /// - Parameters:
    ///   - resources: The resources by path. Requests for other paths receive a 404 response.
    ///   - delivery: The mode that determines when bytes are delivered.
    ///   - pieceSize: The maximum number of bytes in a chunk.
    ///   - clock: The clock for the pauses of ``OriginBehavior/drip(_:every:)``.
    public init(
        _ resources: [String: OriginResource] = [:], delivery: Delivery = .immediate, pieceSize: Int = 16 * 1024,
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        originState = OriginState(resources: resources, clock: clock)
        self.delivery = delivery
        self.pieceSize = max(1, pieceSize)
    }

    // MARK: Resources

    /// The log of the requests and of the delivered bytes.
    public var log: OriginLog { originState.log }

    /// Changes the resource at `path`, if there is one. Responses in progress are not affected.
    public func update(_ path: String, _ mutate: (inout OriginResource) -> Void) {
        originState.update(path) { if $0 != nil { mutate(&$0!) } }  // The condition excludes `nil`.
    }

    /// Serves `resource` at `path` from now on. If `resource` is `nil`, requests for the path receive a 404 response.
    public func set(_ path: String, _ resource: OriginResource?) { originState.update(path) { $0 = resource } }

    /// Sets the script that determines the responses to requests for `path`; `nil` removes the script.
    public func script(_ path: String, _ script: Script?) { state.withLock { $0.scripts[path] = script } }

    // MARK: Step by step

    /// Allows `count` more bytes of every open body for `path` to be delivered.
    public func deliver(_ count: Int64, of path: String) {
        for flow in open(path) { flow.allow(count) }
    }

    /// Allows all remaining bytes of every open body for `path` to be delivered.
    public func deliverRest(of path: String) {
        for flow in open(path) { flow.allow(.max) }
    }

    /// Fails every open body for `path`, so that reading its next chunk throws `error`.
    public func fail(_ path: String, _ error: UpstreamError) {
        for flow in open(path) { flow.fail(error) }
    }

    /// Resumes the stalled responses for `path`, or all stalled responses if `path` is `nil`.
    ///
    /// Responses in progress that would stall later do not stall.
    public func release(_ path: String? = nil) { originState.release(path) }

    /// Makes the origin unreachable, or reachable again. Open bodies continue.
    public func setReachable(_ isReachable: Bool) { state.withLock { $0.isReachable = isReachable } }

    private func open(_ path: String) -> [ScriptedFlow] {
        state.withLock { $0.flows.values.filter { $0.path == path } }
    }

    // MARK: Upstream

    /// Responds to one request.
    ///
    /// - Throws: ``UpstreamError``: `unreachable` if the test made the origin unreachable, `connectionLost` if the
    ///   response ends before its headers, `cancelled` if the task is cancelled.
    public func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
        let url = request.url
        let path = url.path(percentEncoded: true)
        guard state.withLock({ $0.isReachable }) else { throw UpstreamError(.unreachable, "\(path) cannot be reached") }
        var fields = request.headerFields
        fields[.acceptEncoding] = fields[.acceptEncoding] ?? "identity"
        var exchange = OriginExchange(
            connection: 0, method: request.method.rawValue, path: path, query: url.query(percentEncoded: true) ?? "",
            headerFields: fields)
        if let body = request.body {
            for try await chunk in body { chunk.withUnsafeBytes { exchange.requestBody += $0 } }
        }
        exchange = originState.log.begin(exchange)
        do {
            return try await response(request, exchange)
        } catch {
            originState.drop(exchange.number)
            originState.log.update(exchange.number) {
                $0.ending = error is CancellationError ? .clientDisconnected : .interrupted
            }
            if error is CancellationError {
                throw UpstreamError(.cancelled, "\(path) was cancelled", underlying: error)
            }
            throw error
        }
    }

    private func response(_ request: UpstreamRequest, _ exchange: OriginExchange) async throws -> UpstreamResponse {
        try Task.checkCancellation()
        let script = state.withLock { $0.scripts[exchange.path] }
        if let response = try await script?(request, exchange.index) {
            let range = request.method == .head ? 0..<0 : response.body ?? 0..<response.content.length
            return respond(
                request, response.head, ScriptedFlow.Plan(response.content, range, failure: response.failure), exchange)
        }
        let response = originState.response(exchange, keepsAlive: true)
        let interruption = UpstreamError(.connectionLost, "\(exchange.path) was interrupted")
        var plan = ScriptedFlow.Plan(response.content, response.body)
        plan.pace = response.pace
        switch (response.incident?.kind, response.incident?.after) {
        case (nil, _): break
        case (.stall, nil): try await waitForRelease(exchange)
        case (.stall, let after?): plan.stall = min(after, Int64(response.body.count))
        case (_, nil): throw UpstreamError(.connectionLost, "\(exchange.path) ended before its headers")
        case (_, let after?):
            plan.range = plan.range.clamped(to: plan.range.lowerBound..<plan.range.lowerBound + after)
            plan.failure = interruption
        }
        if let promised = response.statedLength, promised > response.body.count { plan.failure = interruption }
        return respond(request, response.response, plan, exchange)
    }

    private func respond(
        _ request: UpstreamRequest, _ head: HTTPResponse, _ plan: ScriptedFlow.Plan, _ exchange: OriginExchange
    ) -> UpstreamResponse {
        let number = exchange.number
        originState.log.update(number) {
            $0.status = head.status.code
            $0.body = plan.range
        }
        let flow = ScriptedFlow(
            exchange, plan, originState, pieceSize: pieceSize, allowance: delivery == .immediate ? .max : 0
        ) { [weak self] in
            self?.state.withLock { _ = $0.flows.removeValue(forKey: number) }
        }
        state.withLock { $0.flows[number] = flow }
        return UpstreamResponse(head: head, url: request.url, body: UpstreamBody(ScriptedBody(flow)))
    }

    private func waitForRelease(_ exchange: OriginExchange) async throws {
        let (released, release) = AsyncStream.makeStream(of: Void.self)
        originState.hold(exchange.number, path: exchange.path) { release.finish() }
        for await _ in released {}
        try Task.checkCancellation()
    }
}

/// A scripted body that ends its flow when it is released, either before or during iteration.
struct ScriptedBody: AsyncSequence, Sendable {
    typealias Element = [UInt8]

    private final class Owner: Sendable {
        let flow: ScriptedFlow
        let isTakenOver = Mutex(false)
        init(_ flow: ScriptedFlow) { self.flow = flow }
        deinit { if !isTakenOver.withLock({ $0 }) { flow.close() } }
    }

    private let owner: Owner

    init(_ flow: ScriptedFlow) { owner = Owner(flow) }

    func makeAsyncIterator() -> Iterator {
        owner.isTakenOver.withLock { $0 = true }
        return Iterator(owner.flow)
    }

    final class Iterator: AsyncIteratorProtocol {
        private let flow: ScriptedFlow
        init(_ flow: ScriptedFlow) { self.flow = flow }
        deinit { flow.close() }

        func next() async throws -> [UInt8]? { try await flow.next() }
    }
}

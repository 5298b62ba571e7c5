import Foundation
public import HTTPTypes
public import Spool
public import SpoolOrigin
import Synchronization

/// An upstream in memory: responds as an `OriginServer` would, without sockets, and as slowly as a test wants.
///
/// It takes the same ``/SpoolOrigin/OriginResource``s with the same behaviours and keeps the same ``/SpoolOrigin/OriginLog``, where a byte counts
/// as sent when it was handed out. Bodies are handed out in pieces when they are asked for; with ``Delivery/byHand`` only
/// as many bytes as the test has allowed. It follows no redirects, has no timeouts and no limit per host, and looks at the
/// path of a URL only, not at its host. Safe to use from any task.
///
/// ```swift
/// let upstream = ScriptedUpstream(["/song.mp3": .pattern(1_000_000)], delivery: .byHand)
/// …                                        // something opens http://any.host/song.mp3
/// upstream.deliver(4096, of: "/song.mp3")  // the first page lands
/// upstream.fail("/song.mp3", UpstreamError(.connectionLost, "the line went dead"))
/// ```
public final class ScriptedUpstream: Upstream {
    /// When bytes are handed out.
    #if hasAttribute(nonexhaustive)
    @nonexhaustive
    #endif
    public enum Delivery: Sendable {
        /// As soon as they are asked for.
        case atOnce
        /// When the test allows them by ``ScriptedUpstream/deliver(_:of:)``.
        case byHand
    }

    /// The response to one request, in place of its resource's.
    public struct Response: Sendable {
        /// Status and fields, complete.
        public var head: HTTPResponse
        /// The bytes that the body is a part of.
        public var content: OriginContent
        /// The bytes of `content` in the body, half-open; nil for all.
        public var body: Range<Int64>?
        /// The error that the body throws in place of its end; nil for an end.
        public var failure: UpstreamError?

        /// A response from its parts.
        public init(
            _ head: HTTPResponse, _ content: OriginContent, body: Range<Int64>? = nil, failure: UpstreamError? = nil
        ) {
            self.head = head
            self.content = content
            self.body = body
            self.failure = failure
        }
    }

    /// Decides about one request: a response, or nil for what the resource says; or throws, as if no response had come.
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

    /// An upstream that serves `resources` by path.
    ///
    /// - Parameters:
    ///   - resources: What is served; other paths are 404.
    ///   - delivery: When bytes are handed out.
    ///   - pieceSize: Most bytes in a chunk.
    ///   - clock: Where the pauses of ``OriginBehaviour/drip(_:every:)`` come from.
    public init(
        _ resources: [String: OriginResource] = [:], delivery: Delivery = .atOnce, pieceSize: Int = 16 * 1024,
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        originState = OriginState(resources: resources, clock: clock)
        self.delivery = delivery
        self.pieceSize = max(1, pieceSize)
    }

    // MARK: Resources

    /// The requests, and the bytes handed out.
    public var log: OriginLog { originState.log }

    /// Changes what is served at `path`; responses that have begun go on as they began. Does nothing for an unknown path.
    public func update(_ path: String, _ mutate: (inout OriginResource) -> Void) {
        originState.update(path) { if $0 != nil { mutate(&$0!) } }  // Just compared with nil.
    }

    /// Serves `resource` at `path` from now on; nil makes it 404.
    public func set(_ path: String, _ resource: OriginResource?) { originState.update(path) { $0 = resource } }

    /// Lets `script` decide about the requests to `path`; nil takes the script away.
    public func script(_ path: String, _ script: Script?) { state.withLock { $0.scripts[path] = script } }

    // MARK: Step by step

    /// Allows `count` more bytes to be handed out, in every body of `path` that is open now.
    public func deliver(_ count: Int64, of path: String) {
        for flow in open(path) { flow.allow(count) }
    }

    /// Allows all that is still to come, in every body of `path` that is open now.
    public func deliverRest(of path: String) {
        for flow in open(path) { flow.allow(.max) }
    }

    /// Breaks off every body of `path` that is open now: its next chunk throws `error`.
    public func fail(_ path: String, _ error: UpstreamError) {
        for flow in open(path) { flow.fail(error) }
    }

    /// Lets responses that stall now go on: those of `path`, or all when nil is given.
    public func release(_ path: String? = nil) { originState.release(path) }

    /// Makes the origin unreachable from now on, or reachable again. Bodies that are open go on.
    public func setReachable(_ isReachable: Bool) { state.withLock { $0.isReachable = isReachable } }

    private func open(_ path: String) -> [ScriptedFlow] {
        state.withLock { $0.flows.values.filter { $0.path == path } }
    }

    // MARK: Upstream

    /// Responds to one request.
    ///
    /// - Throws: ``UpstreamError``; `connectionLost` where the resource ends before its head, `cancelled` when the task is cancelled.
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
                $0.ending = error is CancellationError ? .abandoned : .interrupted
            }
            if error is CancellationError { throw UpstreamError(.cancelled, "\(path) was given up", underlying: error) }
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
        let interruption = UpstreamError(.connectionLost, "\(exchange.path) broke off")
        var plan = ScriptedFlow.Plan(response.content, response.body)
        plan.pace = response.pace
        switch (response.incident?.kind, response.incident?.after) {
        case (nil, _): break
        case (.stall, nil): try await waitForRelease(exchange)
        case (.stall, let after?): plan.stall = min(after, Int64(response.body.count))
        case (_, nil): throw UpstreamError(.connectionLost, "\(exchange.path) ended before its head")
        case (_, let after?):
            plan.range = plan.range.clamped(to: plan.range.lowerBound..<plan.range.lowerBound + after)
            plan.failure = interruption
        }
        if let promised = response.promisedLength, promised > response.body.count { plan.failure = interruption }
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
            exchange, plan, originState, pieceSize: pieceSize, allowance: delivery == .atOnce ? .max : 0
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

import HTTPRanges
import HTTPTypes
import SpoolScheduling
import SpoolStorage

/// The sender of one source's requests to its origin, such as requests by transfers, requests for lengths, and requests
/// before imports. It also sends clients' requests that bypass the cache.
///
/// This type resolves the source's credentials, takes one of the origin's connections, records a loss of the network,
/// and describes errors. It does not decide what to request, and does not evaluate responses.
struct OriginExchange: Sendable {
    let credentials: SourceCredentials
    let context: CacheContext

    /// A request with the source's credentials, and the origin to which it is sent.
    struct Prepared: Sendable {
        var request: UpstreamRequest
        /// The source's header fields, without those that the engine adds.
        let fields: HTTPFields
        /// The number that identifies the credentials.
        var number: Int
        let origin: OriginState
    }

    /// A response, and the connection that carries it.
    struct Opened: Sendable {
        let response: UpstreamResponse
        /// The connection, which has to be ended after the body.
        let connection: OriginConnection
        fileprivate let number: Int
    }

    // MARK: - Steps

    /// Resolves the source, and returns the request with its credentials.
    ///
    /// - Throws: `UpstreamError` if the source's resolver failed because of the network; other errors from the
    ///   resolver.
    func prepare() async throws -> Prepared {
        let resolved = try await credentials.resolved()
        let fields = resolved.request.headerFields
        var request = UpstreamRequest(url: resolved.request.url, headerFields: fields)
        request.followsRedirects = context.configuration.followsRedirects
        // If clients follow redirects themselves, they also manage their own cookies.
        request.cookies = request.followsRedirects ? credentials.source.cookies : nil
        request.headerFields[.acceptEncoding] = "identity"
        if request.url != credentials.source.url {
            context.coordinator.needs([request.url], for: credentials.source.url)
        }
        let origin = context.coordinator.origin(of: request.url)
        return Prepared(request: request, fields: fields, number: resolved.number, origin: origin)
    }

    /// Returns the purpose of requests with this priority.
    func purpose(of priority: Priority) -> UpstreamRequest.Purpose {
        switch priority {
        case .playback: .playback
        case .preload: credentials.source.isDownload ? .download : .preload
        }
    }

    /// Takes one of the origin's connections.
    ///
    /// - Parameter cancelPaused: A function that cancels a paused transfer of the same resource, and returns whether it
    ///   did. It is called while the origin accepts no more connections.
    /// - Throws: `OriginState.AllConnectionsBusy`; `CancellationError`.
    func connect(
        to origin: OriginState, as priority: Priority, cancelPaused: @Sendable () -> Bool = { false }
    ) async throws -> OriginConnection {
        try await origin.connect(priority, waitLimit(priority), cancelPaused: cancelPaused)
    }

    /// Takes one of the origin's connections. Returns `nil` if none is free.
    func connectIfAvailable(to origin: OriginState, as priority: Priority) -> OriginConnection? {
        origin.connectIfAvailable(priority, now: context.clock.elapsed)
    }

    /// Closes the connection of a rejected request, and opens it again as soon as the origin may accept the request.
    /// The parameters and errors are the same as for ``connect(to:as:cancelPaused:)``.
    func reopen(
        _ connection: OriginConnection, to origin: OriginState, as priority: Priority, _ opening: OriginState.Opening,
        cancelPaused: @Sendable () -> Bool
    ) async throws {
        connection.close()
        try await origin.open(connection, as: priority, opening, waitLimit(priority), cancelPaused: cancelPaused)
    }

    private func waitLimit(_ priority: Priority) -> OriginState.WaitLimit {
        OriginState.WaitLimit(priority, context.configuration.retry, context.clock)
    }

    /// Sends a request, and waits for the response headers.
    ///
    /// - Throws: `UpstreamError`; `CancellationError`.
    func send(_ request: UpstreamRequest, to origin: OriginState) async throws -> UpstreamResponse {
        let upstream = credentials.source.upstreamOverride ?? context.upstream
        do {
            return try await upstream.open(request)
        } catch {
            recordLoss(error, of: origin)
            throw error
        }
    }

    /// Records that the origin could not be reached, if that is the reason for the error.
    func recordLoss(_ error: any Error, of origin: OriginState) {
        guard let error = error as? UpstreamError, error.isTransient, error.code != .cancelled else { return }
        // A preload may be rejected on a network that playback may use.
        guard error.code != .networkNotAllowed else { return }
        origin.recordFailure(.unreachable, at: context.clock.elapsed())
    }

    /// Sends a client's request unchanged. The caller records a loss of the network.
    ///
    /// If the connection closes before the response, a GET or HEAD request is sent once more. The origin may have
    /// closed an idle connection at the moment at which it was reused (RFC 9112 §9.3.1).
    static func relay(_ request: UpstreamRequest, in context: CacheContext) async throws -> UpstreamResponse {
        do {
            return try await context.upstream.open(request)
        } catch let error as UpstreamError
            where error.code == .connectionLost && request.body == nil && [.get, .head].contains(request.method)
        {
            return try await context.upstream.open(request)
        }
    }

    // MARK: - Single requests

    /// Sends a request that is not part of a transfer.
    ///
    /// - Parameter change: A function that adjusts the request before it is sent.
    /// - Throws: The errors from ``prepare()``, ``connect(to:as:)`` and ``send(_:to:)``.
    func open(
        as priority: Priority, _ change: (inout UpstreamRequest) -> Void
    ) async throws -> Opened {
        var prepared = try await prepare()
        prepared.request.purpose = purpose(of: priority)
        change(&prepared.request)
        let connection = try await connect(to: prepared.origin, as: priority)
        let response = try await send(prepared.request, to: prepared.origin)
        return Opened(response: response, connection: connection, number: prepared.number)
    }

    /// Refreshes the source's credentials if the origin rejected them. Returns whether the source returned new
    /// credentials.
    func refreshesCredentials(after opened: Opened) async throws -> Bool {
        let status = opened.response.head.status.code
        guard [401, 403, 407, 410].contains(status) else { return false }
        return try await credentials.refresh(opened.number, status: status)
    }

    // MARK: - Errors

    /// Returns the error to report for a request that failed without a response.
    ///
    /// - Parameter place: The URL, and the range if there is one.
    /// - Returns: A `CacheError`, a `CancellationError`, or the error itself if it has a different type.
    func reported(_ error: any Error, at place: String) -> any Error {
        switch error {
        case let error as UpstreamError:
            if error.code == .cancelled { return CancellationError() }
            let code = error.code == .malformedResponse ? CacheError.Code.malformedResponse : .originUnavailable
            let text = "\(place): \(error.message(after: credentials.source.redactedURL))"
            return CacheError(code, text, underlying: error)
        case let error as OriginState.AllConnectionsBusy:
            let text = "\(place): all connections to the origin have been busy for \(error.limit)"
            return CacheError(.originUnavailable, text, underlying: error)
        default: return error
        }
    }
}

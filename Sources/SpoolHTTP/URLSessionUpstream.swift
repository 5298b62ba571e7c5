#if !StaticLinking
import HTTPRanges
import HTTPTypes
public import Spool
import Synchronization

#if canImport(FoundationNetworking)
import Foundation
public import FoundationNetworking
#else
public import Foundation
import Security
#endif

/// Fetches media with URLSession: the upstream for Apple platforms, with the system's proxies, cellular policy and trust.
///
/// On Apple platforms a body that nobody asks for is suspended at about 1 MiB. That is a request, not an order: where
/// bytes come all the same, the body is ended at 8 MiB and its rest has to be asked for again, or at 64 MiB from an origin
/// without ranges. On Linux, FoundationNetworking cannot hold a body at all (`suspend()` repeats the request), always
/// decompresses, and may report a connection that breaks off as complete when the length is unknown; use
/// `AsyncHTTPClientUpstream` there. The upstream keeps no cookies, no cache and no credentials.
public final class URLSessionUpstream: Upstream {
    private let configuration: HTTPUpstream.Configuration
    private let session: URLSession
    private let delegate: SessionDelegate

    /// An upstream with connections of its own.
    ///
    /// - Parameters:
    ///   - configuration: Timeouts and limits.
    ///   - sessionConfiguration: What the system is told beside: proxies, TLS versions, classes of service. It is copied; cookies,
    ///     cache and credentials are switched off in the copy, TLS is 1.2 at least.
    public convenience init(
        _ configuration: HTTPUpstream.Configuration = .init(),
        sessionConfiguration: URLSessionConfiguration = .ephemeral
    ) {
        self.init(configuration, sessionConfiguration, SessionDelegate())
    }

    #if canImport(Darwin)
    /// Says what becomes of an authentication challenge, and by which credential.
    public typealias ChallengeHandler =
        @Sendable (URLAuthenticationChallenge) async -> (URLSession.AuthChallengeDisposition, URLCredential?)

    /// The same, for servers whose certificate is pinned, or that ask for a client certificate.
    ///
    /// ```swift
    /// URLSessionUpstream { challenge in
    ///     guard challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodClientCertificate else {
    ///         return (.performDefaultHandling, nil)
    ///     }
    ///     return (.useCredential, URLCredential(identity: identity, certificates: nil, persistence: .forSession))
    /// }
    /// ```
    ///
    /// - Parameter onChallenge: Called for each challenge of a connection (`NSURLAuthenticationMethodServerTrust`,
    ///   `…ClientCertificate`, `…NTLM`, `…Negotiate`), from any task; for those that it leaves alone, it returns
    ///   `.performDefaultHandling`. A request's own 401 is the `MediaSource`'s affair. FoundationNetworking knows no
    ///   such challenges.
    public convenience init(
        _ configuration: HTTPUpstream.Configuration = .init(),
        sessionConfiguration: URLSessionConfiguration = .ephemeral, onChallenge: @escaping ChallengeHandler
    ) {
        self.init(configuration, sessionConfiguration, SessionDelegate(onChallenge))
    }
    #endif

    private init(
        _ configuration: HTTPUpstream.Configuration, _ sessionConfiguration: URLSessionConfiguration,
        _ delegate: SessionDelegate
    ) {
        self.configuration = configuration
        self.delegate = delegate
        // The caller's own object stays as it is.
        let session = sessionConfiguration.copy() as? URLSessionConfiguration ?? .ephemeral
        session.httpCookieStorage = nil
        session.httpShouldSetCookies = false
        session.urlCache = nil
        session.urlCredentialStorage = nil
        session.requestCachePolicy = .reloadIgnoringLocalCacheData
        // How many there are is for the cache to say; whoever waited here would wait until the head timeout.
        session.httpMaximumConnectionsPerHost = 256
        session.allowsCellularAccess = session.allowsCellularAccess && configuration.networkAccess.contains(.cellular)
        #if canImport(Darwin)
        session.allowsExpensiveNetworkAccess =
            session.allowsExpensiveNetworkAccess && configuration.networkAccess.contains(.expensive)
        session.allowsConstrainedNetworkAccess =
            session.allowsConstrainedNetworkAccess && configuration.networkAccess.contains(.constrained)
        if session.tlsMinimumSupportedProtocolVersion.rawValue < tls_protocol_version_t.TLSv12.rawValue {
            session.tlsMinimumSupportedProtocolVersion = .TLSv12
        }
        #endif
        // The exchange's own timeouts count; URLSession's would also count while a body is suspended.
        session.timeoutIntervalForRequest = 7 * 86400
        self.session = URLSession(configuration: session, delegate: delegate, delegateQueue: nil)
    }

    deinit { session.finishTasksAndInvalidate() }

    /// Sends one request; see ``Upstream/open(_:)``.
    public func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
        let (session, delegate) = (session, delegate)
        let body = try await request.bufferedBody
        return try await SpoolHTTP.open(request, configuration) { request, exchange in
            var message = URLRequest(url: request.url)
            message.httpMethod = request.method.rawValue
            message.httpBody = body
            message.httpShouldHandleCookies = false
            for field in request.headerFields { message.addValue(field.value, forHTTPHeaderField: field.name.rawName) }
            delegate.start(
                session.dataTask(with: message), exchange, request.url.nameForMessages, on: session.delegateQueue)
        }
    }
}

extension UpstreamRequest {
    /// Its body, which URLSession would otherwise want as a stream of its own kind.
    ///
    /// - Throws: ``UpstreamError`` with code `failed` beyond 1 MiB; what the body throws.
    fileprivate var bufferedBody: Data? {
        get async throws {
            guard let body else { return nil }
            var data = Data()
            for try await chunk in body {
                chunk.withUnsafeBytes { data.append(contentsOf: $0) }
                guard data.count <= 1 << 20 else {
                    throw UpstreamError(.failed, "\(url.nameForMessages) can't be sent more than 1 MiB by URLSession")
                }
            }
            return data
        }
    }
}

/// Hands what URLSession receives to the exchanges, by task.
private final class SessionDelegate: NSObject, URLSessionDataDelegate {
    private struct Flight {
        var exchange: Exchange<Data>
        var name: String
        /// Bytes that `Content-Length` promised and that have not come; nil if it promised none.
        var missing: Int64?
        /// Bytes that may lie here unread before the body is ended.
        var heldLimit = 64 << 20
        /// Whether the task is suspended; touched on the session's serial delegate queue only.
        var isSuspended = false
        var hasHead = false
    }

    private let flights = Mutex<[Int: Flight]>([:])

    #if canImport(Darwin)
    private let onChallenge: URLSessionUpstream.ChallengeHandler?

    init(_ onChallenge: URLSessionUpstream.ChallengeHandler? = nil) { self.onChallenge = onChallenge }

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        // As if there were no such method.
        guard let onChallenge else { return (.performDefaultHandling, nil) }
        return await onChallenge(challenge)
    }
    #endif

    func start(_ task: URLSessionDataTask, _ exchange: Exchange<Data>, _ name: String, on queue: OperationQueue) {
        flights.withLock { $0[task.taskIdentifier] = Flight(exchange: exchange, name: name) }
        // By way of the delegate queue, so that no resume overtakes the suspend that it belongs to.
        let resume: @Sendable () -> Void = { queue.addOperation { self.setSuspended(task, false) } }
        exchange.attach(.init(resume: resume, cancel: { task.cancel() }))
        task.resume()
    }

    /// Suspends or resumes a task once, however often it is told to. Runs on the delegate queue.
    private func setSuspended(_ task: URLSessionDataTask, _ suspends: Bool) {
        guard Self.canSuspend else { return }
        let changes = flights.withLock { flights in
            guard let flight = flights[task.taskIdentifier], flight.isSuspended != suspends else { return false }
            flights[task.taskIdentifier]?.isSuspended = suspends
            return true
        }
        guard changes else { return }
        if suspends { task.suspend() } else { task.resume() }
    }

    #if canImport(Darwin)
    private static let canSuspend = true
    #else
    /// FoundationNetworking begins the request anew on `resume()`.
    private static let canSuspend = false
    #endif

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        receiveHead(response, of: dataTask)
        completionHandler(.allow)
    }

    private func receiveHead(_ response: URLResponse?, of task: URLSessionTask) {
        guard let response = response as? HTTPURLResponse else { return }
        var fields = HTTPFields()
        for (name, value) in response.allHeaderFields {
            if let name = (name as? String).flatMap({ HTTPField.Name($0) }), let value = value as? String {
                fields.append(HTTPField(name: name, value: value))
            }
        }
        let flight = flights.withLock { flights in
            // An encoded body is decoded on the way, and HEAD has none, so its length says nothing here.
            if fields[.contentEncoding] == nil, task.originalRequest?.httpMethod != "HEAD" {
                flights[task.taskIdentifier]?.missing = fields.contentLength
            }
            let hasRanges = response.statusCode == 206 || fields[.acceptRanges]?.lowercased() == "bytes"
            if hasRanges { flights[task.taskIdentifier]?.heldLimit = 8 << 20 }
            flights[task.taskIdentifier]?.hasHead = true
            return flights[task.taskIdentifier]
        }
        guard let flight else { return }
        // swift-http-types traps on more than three digits.
        guard (0...999).contains(response.statusCode) else {
            let message = "\(flight.name) responded with the status \(response.statusCode), which means nothing"
            flight.exchange.finish(.failure(UpstreamError(.malformed, message)))
            task.cancel()
            return
        }
        flight.exchange.receiveHead(HTTPResponse(status: .init(code: response.statusCode), headerFields: fields))
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        let flight = flights.withLock { flights in
            if let missing = flights[dataTask.taskIdentifier]?.missing {
                flights[dataTask.taskIdentifier]?.missing = missing - Int64(data.count)
            }
            return flights[dataTask.taskIdentifier]
        }
        guard let flight, !data.isEmpty, !flight.exchange.receive(data, count: data.count) else { return }
        guard flight.exchange.bufferedBytes < flight.heldLimit else {
            // What has come is handed out first; then whoever reads asks for the rest.
            let message = "\(flight.name) was ended, since it went on while nobody asked for it"
            flight.exchange.finish(.failure(UpstreamError(.connectionLost, message)))
            dataTask.cancel()
            return
        }
        setSuspended(dataTask, true)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        // FoundationNetworking calls no `didReceive response` for a redirect without a URL, and drops its body.
        let isBare = flights.withLock { $0[task.taskIdentifier]?.hasHead == false } && error == nil
        if isBare { receiveHead(task.response, of: task) }
        guard let flight = flights.withLock({ $0.removeValue(forKey: task.taskIdentifier) }) else { return }
        if let error {
            flight.exchange.finish(.failure(Self.reading(error, flight.name, isInBody: flight.hasHead)))
        } else if let missing = flight.missing, missing > 0, !isBare {
            let message = "\(flight.name) closed the connection \(missing) bytes before the end"
            flight.exchange.finish(.failure(UpstreamError(.connectionLost, message)))
        } else {
            flight.exchange.finish(.success(()))
        }
    }

    private static func reading(_ error: any Error, _ name: String, isInBody: Bool) -> UpstreamError {
        let (code, cause): (UpstreamError.Code, String) =
            switch (error as? URLError)?.code {
            case .cannotFindHost, .cannotConnectToHost, .dnsLookupFailed, .notConnectedToInternet,
                .internationalRoamingOff, .dataNotAllowed, .callIsActive:
                (.unreachable, "cannot be reached")
            case .timedOut: (.timedOut, "took too long")
            // `badServerResponse` is also FoundationNetworking's word for a connection that closed without a head.
            case .networkConnectionLost, .badServerResponse: (.connectionLost, "lost the connection")
            case .secureConnectionFailed, .serverCertificateHasBadDate, .serverCertificateUntrusted,
                .serverCertificateHasUnknownRoot, .serverCertificateNotYetValid, .clientCertificateRejected,
                .clientCertificateRequired:
                (.untrusted, "is not trusted")
            case .httpTooManyRedirects, .redirectToNonExistentLocation: (.redirects, "redirects to nowhere")
            case .cancelled: (.cancelled, "was given up")
            // FoundationNetworking has no code for a body that breaks off.
            case .unknown where isInBody, nil where isInBody: (.connectionLost, "broke off")
            default: (.failed, "failed")
            }
        return UpstreamError(code, "\(name) \(cause)", underlying: error)
    }
}
#endif

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

/// A transport for Apple platforms that fetches media with URLSession. It uses the system's proxies, cellular policy
/// and trust.
///
/// On Apple platforms, the task is suspended if about 1 MiB of a body waits for a reader. The system may still deliver
/// bytes. If 8 MiB are unread, the body is ended, and the rest is requested later. The limit is 64 MiB if the origin
/// does not support ranges.
///
/// On Linux, use `AsyncHTTPClientUpstream` instead. FoundationNetworking can't suspend a body (`resume()` repeats the
/// request) and always decompresses bodies. It may report a response as complete after a broken connection if the
/// length is unknown.
///
/// The transport does not store cookies, responses or credentials.
public final class URLSessionUpstream: Upstream {
    private let configuration: HTTPUpstream.Configuration
    private let session: URLSession
    private let delegate: SessionDelegate

    /// Creates a transport with its own connections.
    ///
    /// - Parameters:
    ///   - configuration: The timeouts and limits of the transport.
    ///   - sessionConfiguration: Other system settings, such as proxies, TLS versions and classes of service. The
    ///     transport copies the configuration, disables cookies, cache and credentials in the copy, and requires TLS
    ///     1.2.
    public convenience init(
        _ configuration: HTTPUpstream.Configuration = .init(),
        sessionConfiguration: URLSessionConfiguration = .ephemeral
    ) {
        self.init(configuration, sessionConfiguration, SessionDelegate())
    }

    #if canImport(Darwin)
    /// A function that returns the disposition of an authentication challenge, and a credential for it.
    public typealias ChallengeHandler =
        @Sendable (URLAuthenticationChallenge) async -> (URLSession.AuthChallengeDisposition, URLCredential?)

    /// Creates a transport for servers that have a pinned certificate or require a client certificate.
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
    /// - Parameter onChallenge: A function that is called for each challenge of a connection
    ///   (`NSURLAuthenticationMethodServerTrust`, `…ClientCertificate`, `…NTLM`, `…Negotiate`), from any task. Return
    ///   `.performDefaultHandling` for challenges that you don't handle. The `MediaSource` handles a 401 response to a
    ///   request. FoundationNetworking does not report challenges of a connection.
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
        // The caller's object stays unchanged.
        let session = sessionConfiguration.copy() as? URLSessionConfiguration ?? .ephemeral
        session.httpCookieStorage = nil
        session.httpShouldSetCookies = false
        session.urlCache = nil
        session.urlCredentialStorage = nil
        session.requestCachePolicy = .reloadIgnoringLocalCacheData
        // The cache limits the number of connections. A request that waits here would time out while waiting for its
        // headers.
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
        // The exchange has its own timeouts. URLSession's timeout would also count while a body is suspended.
        session.timeoutIntervalForRequest = 7 * 86400
        self.session = URLSession(configuration: session, delegate: delegate, delegateQueue: nil)
    }

    deinit { session.finishTasksAndInvalidate() }

    /// Sends one request; see ``Upstream/open(_:)``.
    public func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
        let (session, delegate, configuration) = (session, delegate, configuration)
        let body = try await request.bufferedBody
        return try await SpoolHTTP.open(request, configuration) { request, exchange in
            var message = URLRequest(url: request.url)
            message.httpMethod = request.method.rawValue
            message.httpBody = body
            message.httpShouldHandleCookies = false
            message.restrict(
                to: configuration.networkAccess(for: request.purpose), purpose: request.purpose, in: session)
            for field in request.headerFields { message.addValue(field.value, forHTTPHeaderField: field.name.rawName) }
            delegate.start(
                session.dataTask(with: message), exchange, request.url.nameForMessages, on: session.delegateQueue)
        }
    }
}

extension UpstreamRequest {
    /// The whole body of the request, in memory, because URLSession does not accept an asynchronous sequence.
    ///
    /// - Throws: ``UpstreamError`` with code `other` if the body exceeds 1 MiB, or the error from the body.
    fileprivate var bufferedBody: Data? {
        get async throws {
            guard let body else { return nil }
            var data = Data()
            for try await chunk in body {
                chunk.withUnsafeBytes { data.append(contentsOf: $0) }
                guard data.count <= 1 << 20 else {
                    throw UpstreamError(
                        .other, "\(url.nameForMessages) failed: the request body exceeds URLSession's limit of 1 MiB")
                }
            }
            return data
        }
    }
}

/// A delegate that passes received parts from URLSession to the exchanges, by task.
private final class SessionDelegate: NSObject, URLSessionDataDelegate {
    private struct Flight {
        var exchange: Exchange<Data>
        var name: String
        /// The number of bytes that are still missing according to `Content-Length`; `nil` without that header.
        var missing: Int64?
        /// The number of unread bytes at which the transport ends the body.
        var heldLimit = 64 << 20
        /// Whether the task is suspended. This property is used only on the session's serial delegate queue.
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
        // Without a handler, the system handles the challenge.
        guard let onChallenge else { return (.performDefaultHandling, nil) }
        return await onChallenge(challenge)
    }
    #endif

    func start(_ task: URLSessionDataTask, _ exchange: Exchange<Data>, _ name: String, on queue: OperationQueue) {
        flights.withLock { $0[task.taskIdentifier] = Flight(exchange: exchange, name: name) }
        // This runs on the delegate queue, so that a resume never precedes the suspend to which it belongs.
        let resume: @Sendable () -> Void = { queue.addOperation { self.setSuspended(task, false) } }
        exchange.attach(.init(resume: resume, cancel: { task.cancel() }))
        task.resume()
    }

    /// Suspends or resumes a task, unless it is already in that state. This runs on the delegate queue.
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
    /// FoundationNetworking sends the request again on `resume()`.
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
        let fields = response.fields
        let flight = flights.withLock { flights in
            // URLSession decodes an encoded body, and a response to HEAD has no body, so the length does not apply.
            if fields[.contentEncoding] == nil, task.originalRequest?.httpMethod != "HEAD" {
                flights[task.taskIdentifier]?.missing = fields.contentLength
            }
            let hasRanges = response.statusCode == 206 || fields[.acceptRanges]?.lowercased() == "bytes"
            if hasRanges { flights[task.taskIdentifier]?.heldLimit = 8 << 20 }
            flights[task.taskIdentifier]?.hasHead = true
            return flights[task.taskIdentifier]
        }
        guard let flight else { return }
        guard let head = response.head else {
            let message = "\(flight.name) responded with the invalid status \(response.statusCode)"
            flight.exchange.finish(.failure(UpstreamError(.malformedResponse, message)))
            task.cancel()
            return
        }
        flight.exchange.receiveHead(head)
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
            // The received bytes are delivered first. A reader then requests the rest.
            let message = "\(flight.name) was cancelled because its body was not read"
            flight.exchange.finish(.failure(UpstreamError(.connectionLost, message)))
            dataTask.cancel()
            return
        }
        setSuspended(dataTask, true)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        // FoundationNetworking does not call `didReceive response` for a redirect without a URL, and discards the body
        // of the redirect.
        let isBare = flights.withLock { $0[task.taskIdentifier]?.hasHead == false } && error == nil
        if isBare { receiveHead(task.response, of: task) }
        guard let flight = flights.withLock({ $0.removeValue(forKey: task.taskIdentifier) }) else { return }
        if let error {
            flight.exchange.finish(.failure(UpstreamError(ofURLSession: error, flight.name, isInBody: flight.hasHead)))
        } else if let missing = flight.missing, missing > 0, !isBare {
            let message = "\(flight.name) closed the connection \(missing) bytes before the end of its response"
            flight.exchange.finish(.failure(UpstreamError(.connectionLost, message)))
        } else {
            flight.exchange.finish(.success(()))
        }
    }
}

extension HTTPURLResponse {
    /// The header fields. URLSession combines repeated fields.
    var fields: HTTPFields {
        var fields = HTTPFields()
        for (name, value) in allHeaderFields {
            if let name = (name as? String).flatMap({ HTTPField.Name($0) }), let value = value as? String {
                fields.append(HTTPField(name: name, value: value))
            }
        }
        return fields
    }

    /// The status and the header fields, or `nil` if the status is invalid.
    var head: HTTPResponse? {
        // swift-http-types crashes if a status has more than three digits.
        guard (0...999).contains(statusCode) else { return nil }
        return HTTPResponse(status: .init(code: statusCode), headerFields: fields)
    }
}

extension UpstreamError {
    /// Creates the error that corresponds to an error from URLSession.
    ///
    /// - Parameters:
    ///   - name: The name of the request in messages.
    ///   - isInBody: Whether the headers of the response were received.
    init(ofURLSession error: any Error, _ name: String, isInBody: Bool) {
        let (code, cause): (Code, String) =
            switch (error as? URLError)?.code {
            case _ where (error as? URLError)?.isRejectedByNetworkAccess == true:
                (.networkNotAllowed, "is not allowed on the current network")
            case .cannotFindHost, .cannotConnectToHost, .dnsLookupFailed, .notConnectedToInternet,
                .internationalRoamingOff, .dataNotAllowed, .callIsActive:
                (.unreachable, "cannot be reached")
            case .timedOut: (.timedOut, "timed out")
            // FoundationNetworking also uses `badServerResponse` if a connection closes without headers.
            case .networkConnectionLost, .badServerResponse: (.connectionLost, "lost the connection")
            case .secureConnectionFailed, .serverCertificateHasBadDate, .serverCertificateUntrusted,
                .serverCertificateHasUnknownRoot, .serverCertificateNotYetValid, .clientCertificateRejected,
                .clientCertificateRequired:
                (.untrustedServer, "is not trusted")
            case .appTransportSecurityRequiresSecureConnection:
                (.notPermitted, "is not permitted by App Transport Security, which requires https")
            case .cannotParseResponse: (.malformedResponse, "sent a response that URLSession can't parse")
            case .httpTooManyRedirects, .redirectToNonExistentLocation:
                (.invalidRedirect, "redirects too often, or without a target")
            case .cancelled: (.cancelled, "was cancelled")
            // FoundationNetworking has no code for an incomplete body.
            case .unknown where isInBody, nil where isInBody: (.connectionLost, "lost the connection")
            default: (.other, "failed")
            }
        self.init(code, "\(name) \(cause)", underlying: error)
    }
}
#endif

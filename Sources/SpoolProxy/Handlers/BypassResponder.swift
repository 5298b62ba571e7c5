#if Proxy
import Foundation
import HTTPRanges
import HTTPTypes
import Logging
import NIOCore
import Spool
import SpoolStorage
import SpoolStreams
import Synchronization

/// The responder for requests that bypass the cache: it forwards them to their origin, and returns the origin's
/// responses.
struct BypassResponder: Sendable {
    let cache: MediaCache
    let configuration: ProxyConfiguration
    let clock: any Clock<Duration>
    /// The object that retries requests without a body while the origin is unavailable, or `nil` if they fail instead.
    let retryWaiter: OriginRetryWaiter?

    /// The minimum time limit for the origin's response to a safe request.
    private static let time = Duration.seconds(30)

    /// Forwards a request, and invalidates the stored resources that it may have changed (RFC 9111 §4.4).
    ///
    /// - Parameter hold: The time for which the origin may hold the response, or `nil` if it may not.
    /// - Throws: `RequestFailure` with status 502 or 504 if the origin does not respond.
    func respond(
        to request: RequestHead, _ call: OutgoingRequest, body: RequestBodyStream.Body?, hold: Duration? = nil
    ) async throws -> Response {
        let passed = try await pass(request, call, body: body, hold: hold)
        if !request.method.isSafe, (200..<400).contains(passed.head.status.code) {
            await invalidate(call.url, passed.head.headerFields)
        }
        return response(passed, to: request)
    }

    /// Forwards a request.
    ///
    /// The time limit for a safe request without a body is the configured one, but at least ``time``. This also applies
    /// to AVPlayer, because a retry would not find a stored response. Other requests may have effects that take longer,
    /// so only the transport limits their time.
    ///
    /// - Parameter hold: See ``respond(to:_:body:hold:)``.
    /// - Throws: `RequestFailure` with status 502 or 504 if the origin does not respond.
    func pass(
        _ request: RequestHead, _ call: OutgoingRequest, body: RequestBodyStream.Body?, hold: Duration? = nil
    ) async throws -> UpstreamResponse {
        guard request.method.isSafe, body == nil, retryWaiter == nil else {
            return try await forward(request, call, body: body)
        }
        let limit = max(configuration.limits.responseTimeout, Self.time, hold ?? .zero)
        let response = try await TimeLimit.value(within: limit, on: clock, executor: cache.readingExecutor) {
            try await forward(request, call, body: nil)
        }
        guard let response else {
            throw RequestFailure(
                504, "\(call.url.nameForMessages): the origin did not start to respond within \(limit)", retryAfter: 1
            ).namingOrigin()
        }
        return response
    }

    /// Forwards a request. If the origin rejects the credentials of a resolver, the resolver is called again once.
    private func forward(
        _ request: RequestHead, _ call: OutgoingRequest, body: RequestBodyStream.Body?
    ) async throws -> UpstreamResponse {
        let source = call.presentation == nil ? nil : try call.source
        let first = try await source?.resolved()
        if let first, let asked = call.url.url { cache.recordNeeds([first.url], for: asked) }
        let response = try await send(
            request, call, to: first?.url ?? call.foundationURL, first?.headerFields ?? call.fields, body)
        guard [401, 403].contains(response.head.status.code), let source, source.isResolved, body == nil else {
            return response
        }
        let next = try await source.resolved(.refused(status: response.head.status.code))
        return try await send(request, call, to: next.url, next.headerFields, nil)
    }

    private func send(
        _ request: RequestHead, _ call: OutgoingRequest, to url: URL, _ fields: HTTPFields,
        _ body: RequestBodyStream.Body?
    ) async throws -> UpstreamResponse {
        var fields = fields
        let own = HTTPFields(request.fields.all.filter { !OutgoingFields.holds($0, call.secrets) })
        OutgoingFields.addConditions(of: own, to: &fields, isHead: request.method == .head)
        // A compressed manifest could not be rewritten.
        let isRead = [.get, .head].contains(request.method)
        for name in isRead ? [HTTPField.Name.cacheControl] : [.cacheControl, .acceptEncoding] {
            for value in own[values: name] { fields.append(HTTPField(name: name, value: value)) }
        }
        if case .length(let length) = request.body { fields[.contentLength] = String(length) }
        var asked = UpstreamRequest(url: url, headerFields: fields)
        asked.method = HTTPRequest.Method(rawValue: request.method.name) ?? .get
        asked.followsRedirects = !call.isReverse
        asked.cookies = call.isReverse ? nil : call.presentation?.source.cookies ?? call.cookies
        if let body { asked.body = UpstreamBody(body.map { Data($0.readableBytesView) }) }
        return try await open(asked, body == nil ? retryWaiter : nil)
    }

    private func open(_ request: UpstreamRequest, _ retryWaiter: OriginRetryWaiter?) async throws -> UpstreamResponse {
        var count = OriginRetryWaiter.Count()
        while true {
            do {
                let response = try await cache.relay(request)
                let isRefusal = StatusRules.isTemporaryFailure(response.head.status.code)
                cache.note(isRefusal ? .refusing : nil, at: request.url)
                guard isRefusal, try await retryWaiter?.waits(after: response.head, &count) == true else {
                    return response
                }
            } catch let error as UpstreamError {
                if error.isTransient { cache.note(.unreachable, at: request.url) }
                let failure = CacheError(.originUnavailable, error.message, underlying: error)
                if try await retryWaiter?.waits(after: failure, &count) == true { continue }
                // An origin that closes the connection has responded in time, even if not correctly.
                let isLate = error.isTransient && error.code != .connectionLost
                throw RequestFailure(
                    isLate ? 504 : 502, "\(error.message)", retryAfter: error.isTransient ? 1 : nil
                ).namingOrigin()
            }
        }
    }

    /// Returns the origin's response, as the client receives it.
    func response(_ response: UpstreamResponse, to request: RequestHead) -> Response {
        let length = response.head.headerFields.contentLength
        var passed = Response(ResponseHead(response.head.status.code, EndToEndFields.of(response.head.headerFields)))
        passed.head.fields[.contentLength] = nil
        passed.contentRange = response.head.headerFields.parsedContentRange
        passed.head.fields.append(HTTPField(name: .via, value: "1.1 spool"))
        let reason: CacheStatus.Outcome.Reason =
            switch request.method {
            case .head: .miss
            case .get: .bypass
            case .options, .other: .method
            }
        passed.note(
            .forwarded(reason, stored: false, status: response.head.status.code), by: configuration.nodeName)
        if request.method == .head {
            passed.lengthForHead = length
        } else {
            passed.body = .upstream(response.body, count: length)
        }
        return passed
    }

    /// Invalidates the URL, and the URLs of the same origin that the response reports as changed.
    private func invalidate(_ url: OriginURL, _ fields: HTTPFields) async {
        var changed = [url]
        for name in [HTTPField.Name.location, .contentLocation] {
            if let other = fields[name].flatMap(url.sameOriginURL) { changed.append(other) }
        }
        do {
            try await cache.invalidate(changed.compactMap(\.url))
        } catch {
            configuration.logger.warning(
                "the stored response for \(url.nameForMessages) could not be marked as stale: \(error)")
        }
    }
}

/// The resources whose responses set cookies for one client, or can't be used by the cache.
///
/// Requests for these resources bypass the cache for some time. A client must neither wait for another client's
/// response nor receive that client's cookies. Without the bypass, a response that the cache can't use would be
/// requested twice.
///
/// Only requests with the same header fields bypass the cache. An origin that renews one client's cookie may send other
/// clients a response that they can share.
final class BypassedResources: Sendable {
    private let known = Mutex(BoundedTable<Int, Int64>(count: limit))
    private static let limit = 4096
    /// The time for which a resource bypasses the cache, in seconds.
    private static let time: Int64 = 120

    /// Returns whether requests for a resource bypass the cache at the given time, in seconds since 1970.
    ///
    /// - Parameter name: The result of ``requestHash(of:_:)``.
    func contains(_ name: Int, at now: Int64) -> Bool { known.withLock { $0[name].map { now < $0 } ?? false } }

    /// Makes requests for a resource bypass the cache for some time.
    func insert(_ name: Int, at now: Int64) {
        known.withLock { $0.record(now + Self.time, for: name, bytes: MemoryLayout<Int>.size) }
    }

    /// Returns a hash of a resource's key and of the header fields of a request.
    ///
    /// The hash includes all header fields that reach the origin, because the response may depend on any of them.
    static func requestHash(of key: CacheKey, _ fields: HTTPFields) -> Int {
        var hasher = Hasher()
        hasher.combine(key)
        hasher.combine(fields.requestHash)
        return hasher.finalize()
    }
}

extension HTTPFields {
    /// A hash of all names and values, in order.
    var requestHash: Int {
        var hasher = Hasher()
        for field in self {
            hasher.combine(field.name.canonicalName)
            hasher.combine(field.value)
        }
        return hasher.finalize()
    }
}
#endif

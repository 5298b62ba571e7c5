#if Proxy
import Foundation
import HTTPRanges
import HTTPTypes
import Logging
import NIOCore
import Spool
import SpoolStorage
import SpoolStreams

/// The responder for media, through the cache.
struct MediaResponder: Sendable {
    let cache: MediaCache
    let configuration: ProxyConfiguration
    let date: DateText
    let clock: any Clock<Duration>
    /// The object that waits for unavailable origins, or `nil` if requests fail instead.
    let retryWaiter: OriginRetryWaiter?
    let passing: BypassResponder
    let manifests: ManifestResponder
    let sources: SourceRegistry
    let originCookies = OriginCookies()
    /// The resources that bypass the cache for some time.
    let bypassed = BypassedResources()

    /// The time limit for the response to a preload by the server's operator.
    private static let preloadTimeout = Duration.seconds(3600)
    /// The minimum time for which the server keeps waiting for a late response, so that the next client can use it.
    private static let lateResponseTimeout = Duration.seconds(30)
    /// The minimum time limit for a whole manifest.
    private static let manifestTime = Duration.seconds(10)

    private var builder: ResponseBuilder { ResponseBuilder(date: date, node: configuration.nodeName) }

    /// Returns the response to a `GET` or `HEAD`.
    ///
    /// - Throws: `RequestFailure` with status 504 if the origin does not start to respond in time.
    func respond(to request: RequestHead, _ call: OutgoingRequest) async throws -> Response {
        let call = originCookies.adding(to: call)
        var source = try call.source
        let hold = manifests.knowledge.responseHold(for: call.url)
        source.responseHold = hold
        source.presentation = manifests.knowledge.manifest(of: call.url)
        // Delivery directives identify a playlist, even if the key policy of the cache ignores queries.
        if HLSDelivery.hasDirectives(call.url) { source.key = CacheKeyPolicy.url.key(for: source.url) }
        let client = BypassedResources.requestHash(of: cache.key(for: source), call.fields)
        if bypassed.contains(client, at: date.second) {
            return try await bypass(request, call, hold: hold)
        }
        if try await isUncachedKey(source, call) {
            return try await bypass(request, call, hold: hold)
        }
        let directives = directives(of: request)
        if request.method == .head,
            let response = try await head(request, call, cache.media(for: source), directives, hold: hold)
        {
            return response
        }
        var opener = MediaOpener(
            cache: cache, date: date, source: source, directives: directives, priority: Self.priority(of: request, call)
        )
        defer { opener.turn.end() }
        var range = range(of: request)
        var known: MediaOpener.Opened?
        var cookies: HTTPFields = [:]
        // The first reader reads the requested range. Conditions may change the range, which then requires a second
        // reader.
        for _ in 0..<6 {
            do {
                let opened = try await open(range, of: known, opener, for: request, call, hold: hold)
                known = opened
                if call.isReverse, !directives.onlyIfCached, cookies.isEmpty, needsOwnCookies(opened.head) {
                    bypassed.insert(client, at: date.second)
                    guard let own = opened.takeCookies(for: source) else {
                        opened.reader.cancel()
                        return try await bypass(request, call, hold: hold)
                    }
                    cookies = own
                } else if call.isReverse, cookies.isEmpty, [.revalidated, .miss].contains(opened.head.source),
                    !EndToEndFields.hasCookies(opened.head.response.fields)
                {
                    // The origin's response may set cookies even if it only confirms the stored response.
                    cookies = opened.takeCookies(for: source) ?? [:]
                }
                let plan = builder.plan(for: request, opened.head.response)
                let length = opened.head.response.length
                if let wanted = plan.content.range, request.method == .get,
                    !Self.isSame(wanted, range, length: length)
                {
                    opened.reader.cancel()
                    range = wanted
                    continue
                }
                // The reader stays open: a transfer that no reader needs is cancelled, and reading the manifest would
                // then cause another request.
                let isPastEnd = Self.isPastEnd(range, length: length)
                let received = opened.head.response
                if received.isCompressed,
                    let redirect = try manifests.redirect(forStatus: received.status, to: request, call)
                {
                    opened.reader.cancel()
                    return redirect
                }
                if let manifest = try await manifest(
                    of: opened, for: request, call, opener.priority, hold: hold, mayRead: !isPastEnd)
                {
                    opened.reader.cancel()
                    return builder.response(to: request, manifest, opened.head).setting(cookies)
                }
                var response = builder.response(to: request, plan, opened).setting(cookies)
                response.closesIfManifest =
                    call.mustNotBeSteered && !call.isForOperator && !manifests.isKnownNotManifest(opened.head)
                return response
            } catch let error as CacheError where error.code == .resourceChanged && opener.usable != .separate {
                // Another request's response replaced the version before any of its bytes were sent. If this happens
                // twice, the next version is one that no other request can replace.
                opener.usable = opener.usable == .any || directives.onlyIfCached ? .own : .separate
                (known, range) = (nil, self.range(of: request))
            } catch let error as CacheError {
                opener.turn.end(isAnswered: true)
                if let response = builder.response(to: request, error, withLongBodyFor: source) { return response }
                if !directives.onlyIfCached, ResponseBuilder.isOnlyForClient(error, for: request) {
                    configuration.logger.notice(
                        "\(error); for 2 minutes, requests for this media with the same header fields bypass the cache")
                    bypassed.insert(client, at: date.second)
                    return try await bypass(request, call, hold: hold)
                }
                if !directives.onlyIfCached, ResponseBuilder.mustRequestAgain(error, for: request) {
                    return try await bypass(request, call, hold: hold)
                }
                return builder.response(to: request, error)
            }
        }
        throw RequestFailure(502, "the origin sent a different version in each response", retryAfter: 1)
    }

    // MARK: - Requests

    /// Forwards a request to its origin without the cache. Manifests are rewritten, as with the cache.
    private func bypass(_ request: RequestHead, _ call: OutgoingRequest, hold: Duration?) async throws -> Response {
        let passed = try await passing.pass(request, call, body: nil, hold: hold)
        let response = passing.response(passed, to: request)
        guard request.method == .get else { return manifests.withoutLength(response, of: call) }
        let (status, fields) = (passed.head.status.code, passed.head.headerFields)
        let start = status == 206 ? fields.parsedContentRange?.range?.lowerBound ?? 0 : 0
        guard !call.isForOperator, (200..<300).contains(status), start == 0 else { return response }
        if ResourceVersion.isCompressed(fields) {
            return try manifests.redirect(forStatus: status, to: request, call) ?? response
        }
        guard manifests.mayBeManifest(fields, at: call.url) else {
            var response = response
            response.closesIfManifest = call.mustNotBeSteered
            return response
        }
        let (key, prefixed) = (cache.key(for: try call.source), try addingCookiePrefix(call))
        let limit = max(Self.manifestTime, configuration.limits.responseTimeout(for: request), hold ?? .zero)
        let body = try await TimeLimit.value(within: limit, on: clock, executor: cache.readingExecutor) {
            try await manifests.rewritten(passed, prefixed, key: key)
        }
        switch body {
        case nil: throw RequestFailure(504, "the manifest was not received within \(limit)", retryAfter: 1)
        case .other(let body):
            var passed = passed
            passed.body = body
            return passing.response(passed, to: request)
        case .manifest(let bytes, let memory):
            var response = manifests.withoutLength(response, of: call)
            // A part that starts at byte 0 is only sent if it is the whole manifest.
            guard status != 206 || fields.parsedContentRange.map(\.containsAllBytes) ?? true else {
                throw RequestFailure(502, "the origin sent only a part of the manifest")
            }
            if status == 206 { (response.head.status, response.contentRange) = (200, nil) }
            response.head.fields[.contentRange] = nil
            response.body = .bytes(ByteBuffer(bytes: bytes))
            response.memory = memory
            return response
        }
    }

    /// Returns the freshness that the client requires. If clients may not bypass the cache, the result contains no
    /// requirements.
    private func directives(of request: RequestHead) -> RequestDirectives {
        guard configuration.followsRequestDirectives else { return RequestDirectives() }
        return RequestDirectives(fields: request.fields.all)
    }

    /// Returns the priority of a request. Requests from the operator's commands are preloads if they have the lowest
    /// urgency, `u=7` (RFC 9218 §4.1).
    private static func priority(of request: RequestHead, _ call: OutgoingRequest) -> Priority {
        call.isForOperator && request.fields["priority"] == "u=7" ? .preload : .playback
    }

    /// Returns the range to open a reader for. If several ranges are requested, the first one is returned, because the
    /// headers are the same for all of them.
    private func range(of request: RequestHead) -> MediaRange {
        guard request.method == .get, let first = RangeHeader(fields: request.fields.all)?.specifiers.first else {
            return .all
        }
        switch first {
        case .bounded(let first, let last): return .bytes(first..<last + 1)
        case .from(let first): return .from(first)
        case .suffix(let count): return .suffix(count)
        }
    }

    /// Returns whether two ranges denote the same bytes of a resource.
    private static func isSame(_ one: MediaRange, _ other: MediaRange, length: Int64?) -> Bool {
        guard let length else { return one == other }
        return bounds(one, length: length) == bounds(other, length: length)
    }

    /// Returns whether a range does not contain any bytes of a resource. The result is `false` if the length is
    /// unknown.
    private static func isPastEnd(_ range: MediaRange, length: Int64?) -> Bool {
        length.map { bounds(range, length: $0)?.isEmpty ?? true } ?? false
    }

    /// Returns the offsets of a resource's bytes in a range, or `nil` if the range starts after the end.
    private static func bounds(_ range: MediaRange, length: Int64) -> Range<Int64>? {
        switch range {
        case .from(let start): start <= length ? start..<length : nil
        case .bytes(let range): range.lowerBound <= length ? range.clamped(to: 0..<length) : nil
        case .suffix(let count): max(0, length - max(0, count))..<length
        }
    }

    /// Returns whether the request is for a key that the server does not store, and that no download has stored.
    private func isUncachedKey(_ source: MediaSource, _ call: OutgoingRequest) async throws -> Bool {
        guard !configuration.cachesKeys, !call.isForOperator, manifests.knowledge.isKey(call.url) else { return false }
        do {
            return try await cache.media(for: source).storedResource()?.isComplete != true
        } catch is CacheError {
            return true  // If the catalog can't be read, the key counts as not stored.
        }
    }

    /// Returns whether the origin sent cookies that belong only to the client that caused the response.
    ///
    /// Under policies other than HTTP's, clients with other credentials use the stored response, which has no cookies.
    private func needsOwnCookies(_ opened: OpenedResponse) -> Bool {
        opened.response.dropsCookies && (cache.freshness == .http || opened.source == .miss)
    }

    // MARK: - Time limits

    /// Opens a reader within the time limit for the origin's response.
    ///
    /// - Parameter hold: The time for which the origin may hold the response, or `nil` if it may not.
    /// - Throws: `RequestFailure` with status 504, or 503 if the origin held its response for too long.
    private func open(
        _ range: MediaRange, of known: MediaOpener.Opened?, _ opener: MediaOpener, for request: RequestHead,
        _ call: OutgoingRequest, hold: Duration?
    ) async throws -> MediaOpener.Opened {
        // A preload waits while players are waiting for bytes.
        let hold = opener.priority == .preload ? Self.preloadTimeout : hold
        if hold == nil, let retryWaiter {
            return try await retryingWhileUnavailable(retryWaiter) { try await opener.open(range, of: known) }
        }
        // A player that has requested a held response waits for it.
        let limit =
            hold.map { max($0, ProxyLimits.avPlayerResponseTimeout) }
            ?? configuration.limits.responseTimeout(for: request)
        let outcome = try await TimeLimit.run(within: limit, on: clock, executor: cache.readingExecutor) {
            try await opener.open(range, of: known)
        }
        switch outcome {
        case .value(let opened): return opened
        case .late(let opening):
            store(opening, for: request, call)
            guard hold == nil else {
                throw RequestFailure(
                    503, "\(call.url.nameForMessages): the origin did not send the requested media within \(limit)",
                    retryAfter: 1
                ).namingOrigin()
            }
            let cause = cache.media(for: opener.source).retryCause.map { "; \($0)" } ?? ""
            throw RequestFailure(
                504, "\(call.url.nameForMessages): the origin did not start to respond within \(limit)\(cause)",
                retryAfter: 1
            ).namingOrigin()
        }
    }

    /// Waits for a late response, so that the next client finds it in the cache.
    private func store(
        _ opening: Task<MediaOpener.Opened, any Error>, for request: RequestHead, _ call: OutgoingRequest
    ) {
        // If AVPlayer has received a 504, other clients may wait longer for the same response.
        let limit = max(Self.lateResponseTimeout, configuration.limits.responseTimeout)
        Task { [clock, manifests] in
            let timer = Task {
                try await clock.sleep(for: limit)
                opening.cancel()
            }
            defer { timer.cancel() }
            // No client is waiting for the result, so errors are ignored.
            guard let late = try? await opening.value else { return }
            // This limits the time for which a live playlist is used.
            _ = try? await manifests.manifest(of: late.media, late.head, for: request, call)  // Errors are ignored.
        }
    }

    /// Returns a request with a prefix that refers to the stream's cookies, if there are any. The URLs in a rewritten
    /// manifest include the prefix.
    private func addingCookiePrefix(_ call: OutgoingRequest) throws(RequestFailure) -> OutgoingRequest {
        guard !call.isForOperator, let cookies = call.cookies, !cookies.isEmpty else { return call }
        var call = call
        call.append(prefix: sources.prefix(for: cookies, at: try call.foundationURL))
        return call
    }

    /// Returns the manifest in a resource, or `nil` if the resource is not a manifest.
    ///
    /// - Parameter mayRead: See ``ManifestResponder/manifest(of:_:for:_:mayRead:)``.
    private func manifest(
        of opened: MediaOpener.Opened, for request: RequestHead, _ call: OutgoingRequest, _ priority: Priority,
        hold: Duration?, mayRead: Bool
    ) async throws -> ManifestResponder.Manifest? {
        let (media, head) = (opened.media, opened.head)
        guard manifests.mayBeManifest(head, at: call.url) else { return nil }
        let call = try addingCookiePrefix(call)
        if hold == nil, priority != .preload, let retryWaiter {
            return try await retryingWhileUnavailable(retryWaiter) {
                try await manifests.manifest(of: media, head, for: request, call, mayRead: mayRead)
            }
        }
        let limit = max(Self.manifestTime, configuration.limits.responseTimeout(for: request), hold ?? .zero)
        let found = try await TimeLimit.value(within: limit, on: clock, executor: media.readingExecutor) {
            try await manifests.manifest(of: media, head, for: request, call, mayRead: mayRead)
        }
        guard let found else {
            throw RequestFailure(504, "the manifest was not received within \(limit)", retryAfter: 1)
        }
        return found
    }

    /// Retries an operation while the origin is unavailable.
    private func retryingWhileUnavailable<Value: Sendable>(
        _ retryWaiter: OriginRetryWaiter, _ operation: () async throws -> Value
    ) async throws -> Value {
        var count = OriginRetryWaiter.Count()
        while true {
            do {
                return try await operation()
            } catch let error as CacheError {
                try await retryWaiter.wait(after: error, &count)
            }
        }
    }

    /// Returns the origin's own response to a `HEAD`, or `nil` if the stored headers can be used without a request to
    /// the origin.
    private func head(
        _ request: RequestHead, _ call: OutgoingRequest, _ media: MediaResource, _ directives: RequestDirectives,
        hold: Duration?
    ) async throws -> Response? {
        if directives.onlyIfCached { return nil }
        guard try await media.storedResource() != nil else {
            return manifests.withoutLength(
                try await passing.respond(to: request, call, body: nil, hold: hold), of: call)
        }
        guard cache.freshness == .http, try await media.needsValidation(directives) else { return nil }
        let asked = Date(timeIntervalSince1970: Double(date.second))
        let passed: UpstreamResponse
        do {
            passed = try await passing.pass(request, call, body: nil, hold: hold)
        } catch let failure as RequestFailure {
            // As for a `GET`, the stored response may be usable after an error.
            guard try await media.mayBeUsedAfterError() else { throw failure }
            return nil
        }
        try await media.update(byHead: passed.head, from: passed.url, requestDate: asked)
        var response = passing.response(passed, to: request)
        response.note(
            .forwarded(.stale, stored: false, status: passed.head.status.code), by: configuration.nodeName)
        return manifests.withoutLength(response, of: call)
    }
}
#endif

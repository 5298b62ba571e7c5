import HTTPRanges
import HTTPTypes
import SpoolScheduling
import SpoolStorage
import Synchronization

/// The response headers of one resource, for readers that need them before the first byte.
///
/// This type determines which version a reader reads, and why that version is used. It does not depend on the offsets
/// of transfers.
struct ResourceHeaders {
    let resource: OpenResource

    private var scheduler: Scheduler { resource.scheduler }

    /// The result for a reader that needs the headers.
    enum HeadResult {
        case head(OpenedResponse)
        case failure(CacheError)
        /// The reader is closed.
        case gone
        /// The reader needs its own response; see ``MediaResource/separate()``.
        case separate
    }

    /// Returns the headers of the reader's version as soon as they are known and may be used. The reader keeps that
    /// version.
    func response(_ id: ReaderID) async -> HeadResult {
        var measurement: WaitMeasurement?
        defer { measurement?.end() }
        while true {
            if let result = responseIfAvailable(id) { return result }
            if measurement == nil { measurement = WaitMeasurement(resource, id) }
            await scheduler.wait(for: id, orHeaders: true)
        }
    }

    /// Returns the result of ``response(_:)`` if it is available without waiting. Otherwise returns `nil`.
    func responseIfAvailable(_ id: ReaderID) -> HeadResult? {
        if scheduler.isClosed { return .failure(resource.closedError) }
        switch scheduler.head(for: id, now: resource.context.clock.elapsed()) {
        case .version(let version): return .head(opened(version))
        case .wait: return nil
        case .failed(let known, let range):
            let error =
                known ?? CacheError(.originUnavailable, "\(resource.redactedURL): the origin could not be reached")
            return .failure(error.about(resource.key, range))
        case .closed: return .failure(resource.closedError)
        case .gone: return .gone
        case .separate: return .separate
        }
    }

    /// Returns the headers that are known without a reader. Returns `nil` if there are none, or if the origin has to
    /// confirm them.
    func responseIfAvailable(use: StoredFreshness.Use) -> OpenedResponse? {
        guard resource.isLoaded, !scheduler.isClosed, use != .validate else { return nil }
        return scheduler.currentVersion(isStale: use != .fresh).map { opened($0) }
    }

    /// Wakes the readers that wait for headers, because a response has been evaluated or the stored version may be
    /// used.
    func wakeReaders() {
        // The turn ends before its reader is woken. By the time that reader ends the turn, another request may already
        // have taken it. If there is no version yet, the request that has the turn sends a new request to the origin,
        // or fails.
        if resource.generation != nil { resource.turns.end(isAnswered: true) }
        scheduler.wakeHeaderWaiters()
    }

    private func opened(_ version: VersionInUse) -> OpenedResponse {
        let response =
            version.lease.map { self.response(of: $0.generation) } ?? StoredResponse(length: version.length)
        return OpenedResponse(
            response: response, isExpectedWhole: version.lease?.generation.isExpectedWhole ?? false,
            version: version.lease?.generation.identifier, source: version.source)
    }

    /// Returns the headers of a version, without parsing them again for each request.
    func response(of generation: Generation) -> StoredResponse {
        let (description, isKept) = (generation.description, generation.isKept)
        let known = resource.lastResponse.response(for: description)
        var response = known ?? StoredResponse(description, isStored: isKept)
        response.isStored = isKept
        if known == nil { resource.lastResponse.note(response, for: description) }
        return response
    }
}

/// The last response for a resource, parsed from the description of a version, and the cookies of recent responses.
///
/// Cookies are not stored with a response, because they belong to the client that caused the response. A client that
/// receives them here does not need a separate response. The cookies are returned once, within a short time, and only
/// for a source with the same header fields.
final class LastResponse: Sendable {
    private struct State {
        var parsed: (description: GenerationDescription, response: StoredResponse)?
        /// The cookies of the last responses, oldest first. No client has taken them yet.
        var cookies: [(fields: HTTPFields, source: MediaSource, time: Duration)] = []
    }

    /// The maximum number of responses whose cookies wait for a client.
    private static let cookieLimit = 64

    /// The time within which a client may take the cookies of its response. The client is already waiting for the
    /// response, so a short time is enough.
    static let cookieTime = Duration.seconds(10)

    private let state = Mutex(State())

    func response(for description: GenerationDescription) -> StoredResponse? {
        state.withLock { $0.parsed.flatMap { $0.description == description ? $0.response : nil } }
    }

    func note(_ response: StoredResponse, for description: GenerationDescription) {
        state.withLock { $0.parsed = (description, response) }
    }

    /// Records the cookies in a response to a request from `source`, if there are any.
    func recordCookies(of head: HTTPResponse, for source: MediaSource, at now: Duration) {
        var fields = EndToEndFields.cookies(of: head.headerFields)
        guard !fields.isEmpty else { return }
        // The cookies of a 304 are sent with the fields of the stored response. A cache in front of Spool must not
        // share them.
        if head.status == .notModified {
            let control = CacheControl.governing(head.headerFields).control
            let directives = [
                ("no-store", control.noStore), ("private", control.isPrivate), ("no-cache", control.noCache),
            ]
            for (name, isSet) in directives where isSet { fields.append(HTTPField(name: .cacheControl, value: name)) }
        }
        state.withLock { state in
            state.cookies.removeAll { now - $0.time > Self.cookieTime }
            state.cookies.append((fields, source, now))
            if state.cookies.count > Self.cookieLimit { state.cookies.removeFirst() }
        }
    }

    /// Removes and returns the cookies of the oldest response to a request from this source. Returns `nil` if there are
    /// none.
    func takeCookies(for source: MediaSource, at now: Duration) -> HTTPFields? {
        state.withLock { state in
            state.cookies.removeAll { now - $0.time > Self.cookieTime }
            let index = state.cookies.firstIndex { $0.source.requestsAlike(source) }
            return index.map { state.cookies.remove(at: $0).fields }
        }
    }
}

package import Foundation
package import HTTPRanges
package import HTTPTypes
package import SpoolScheduling
import SpoolStorage
import Synchronization

extension MediaResource {
    /// Returns the response headers of the current version. If nothing is stored, or if the stored version has to be
    /// validated, the headers are requested from the origin. The first block is then requested, but this method does
    /// not wait for its bytes.
    ///
    /// - Throws: The errors from ``MediaReader/response()``.
    package func response(directives: RequestDirectives = .init()) async throws -> OpenedResponse {
        let resource = try await opened()
        let use = decidedUse ?? resource.freshness.use(opening, directives)
        if let known = resource.headers.responseIfAvailable(use: use) {
            if use == .staleMeanwhile { revalidate(resource) }
            return known
        }
        return try await MediaReader(
            media: self, range: Self.beginning, priority: .playback, chunkSize: 1, directives: directives
        ).response()
    }

    /// Returns whether the origin has to validate the stored version before it may be used.
    package func needsValidation(_ directives: RequestDirectives) async throws -> Bool {
        try await opened().freshness.use(opening, directives) == .validate
    }

    /// Returns whether the stored response may be used even though the origin can't be reached (RFC 9111 §4.2.4).
    package func mayBeUsedAfterError() async throws -> Bool {
        try await opened().freshness.mayBeStale(after: .unreachable)
    }

    /// Asks the origin to confirm the version that other requests are reading, without requesting its bytes.
    ///
    /// - Returns: The response that confirms the version, and the resource that receives its bytes. The result is `nil`
    ///   if there is no such version, or if the origin sends a different version.
    /// - Throws: The errors from ``MediaReader/response()``.
    package func confirmed(
        _ directives: RequestDirectives, priority: Priority
    ) async throws -> (media: MediaResource, response: OpenedResponse)? {
        guard let beside else { return nil }
        let reader = MediaReader(
            media: self, range: .bytes(0..<0), priority: priority, chunkSize: 1, directives: directives)
        let response = try await reader.response()
        guard let version = response.version, let generation = beside.resource?.generation,
            generation.identifier == version
        else { return nil }
        // The fields of a 304 response also apply to the stored response (RFC 9111 §4.3.4).
        if !directives.noStore, let freshness = resource?.freshness.current {
            beside.resource?.version.adopt(freshness, of: generation)
        }
        return (beside, response)
    }

    /// Takes the cookies of the last response, which are not stored. Only one client can take them, soon after the
    /// response, and only if the request was sent with the header fields of `source`. For all other clients, the result
    /// is `nil`.
    package func takeCookies(for source: MediaSource) -> HTTPFields? {
        resource.flatMap { $0.lastResponse.takeCookies(for: source, at: $0.context.clock.elapsed()) }
    }

    /// The reason for the last retry, or `nil` if there was none, or if bytes have been stored since.
    package var retryCause: CacheError? { resource?.lastRetryCause }

    /// The range to request if only the response headers are needed.
    static let beginning = MediaRange.bytes(0..<1)

    /// Returns a reader like ``reader(_:chunkSize:)``, with the request directives of a client (RFC 9111 §5.2.1).
    /// Except for `onlyIfCached` and `noStore`, they apply only under ``FreshnessPolicy/http``.
    package func reader(
        _ range: MediaRange = .all, priority: Priority = .playback, chunkSize: Int = 256 << 10,
        handsOutSlices: Bool = false, directives: RequestDirectives,
        ahead: ReadAheadStart = .full
    ) -> MediaReader {
        MediaReader(
            media: self, range: range, priority: priority, chunkSize: chunkSize, handsOutSlices: handsOutSlices,
            directives: directives, ahead: ahead)
    }

    /// Returns a reader of the stored bytes, fresh or stale, which does not send requests to the origin. The reader
    /// throws `CacheError` with code `.notStored` if not all bytes are stored.
    package func storedReader() -> MediaReader {
        var directives = RequestDirectives()
        directives.onlyIfCached = true
        return MediaReader(
            media: self, range: .all, priority: .preload, chunkSize: 256 << 10, directives: directives, use: .stale)
    }

    /// Returns a reader that uses the open version without revalidating it. Missing bytes are still requested.
    ///
    /// Use this reader to read again from a response that was opened for a client. The client's directives have already
    /// determined whether that response may be used, and the decision must not be repeated without them.
    package func readerOfOpenVersion(_ range: MediaRange = .all, isCounted: Bool = true) -> MediaReader {
        MediaReader(
            media: self, range: range, priority: .playback, chunkSize: 256 << 10, use: .stale, isCounted: isCounted)
    }

    /// Checks that a range is available without the origin, if the client allows only cached responses.
    ///
    /// - Throws: `CacheError` with code `.notStored` and status 504.
    func check(
        _ directives: RequestDirectives, _ use: StoredFreshness.Use?, _ range: Range<Int64>, in resource: OpenResource
    ) throws {
        guard directives.onlyIfCached else { return }
        let isUsable = (use ?? resource.freshness.use(opening, directives, from: range.lowerBound)) != .validate
        guard !isUsable || !resource.scheduler.holds(range) else { return }
        throw CacheError(
            .notStored, "\(source.redactedURL): the request allows only cached responses, and none is usable",
            status: 504,
            key: key, range: range)
    }

    /// Revalidates the stored version in the background (RFC 5861 §3), unless a revalidation is in progress or would
    /// end readers.
    func revalidate(_ resource: OpenResource) {
        guard !resource.version.isUnprovable, resource.freshness.beginRevalidation() else { return }
        Task(executorPreference: resource.context.executor.executor(for: .background)) {
            let reader = MediaReader(
                media: self, range: Self.beginning, priority: .preload, chunkSize: 1, use: .validate)
            // If the origin can't be reached, the stored version stays stale, and the next use revalidates it again.
            _ = try? await reader.response()
            resource.freshness.endRevalidation()
        }
    }

    /// Limits the time during which the stored version may be used without validation, under ``FreshnessPolicy/http``.
    /// Open readers are not affected.
    package func limitUse(until moment: Int64) async throws {
        await FreshnessUpdate(resource: try await opened()).limitUse(until: moment)
    }

    /// Applies the header fields of a response to a `HEAD` request. If they belong to a different version, the stored
    /// version has to be validated before its next use (RFC 9111 §4.3.5).
    ///
    /// - Parameters:
    ///   - url: The URL of the response.
    ///   - requestDate: The date of the request.
    package func update(byHead head: HTTPResponse, from url: URL, requestDate: Date) async throws {
        try await FreshnessUpdate(resource: try await opened())
            .update(byHead: head, for: credentials, from: url, requestDate: requestDate)
    }
}

package import Foundation
package import HTTPRanges
package import HTTPTypes
import SpoolStorage
import Synchronization

/// What a client asks of the freshness of what it is sent.
package typealias FreshnessDemand = RequestDirectives

extension MediaResource {
    /// The head of the version that is there now, or, where nothing is stored or it has to be asked about, that the origin
    /// sends: it is asked for the first block then, of which no byte is waited for.
    ///
    /// - Throws: As ``MediaReader/response()``.
    package func response(demand: FreshnessDemand = .init()) async throws -> OpenedResponse {
        let resource = try await opened()
        let use = decidedUse ?? resource.freshness.use(opening, demand)
        if let known = resource.headers.responseNow(use: use) {
            if use == .staleMeanwhile { revalidate(resource) }
            return known
        }
        return try await MediaReader(
            media: self, range: Self.beginning, priority: .playback, chunkSize: 1, demand: demand
        ).response()
    }

    /// Whether the origin has to be asked before what is stored may be used.
    package func needsAsking(_ demand: FreshnessDemand) async throws -> Bool {
        try await opened().freshness.use(opening, demand) == .ask
    }

    /// Asks the origin to confirm the version that other requests are reading, without requesting its bytes.
    ///
    /// - Returns: The response that confirms the version, and the resource that receives its bytes. `nil` if there is
    ///   no such version, or if the origin sends another one.
    /// - Throws: The errors of ``MediaReader/response()``.
    package func confirmed(
        _ demand: FreshnessDemand, priority: Priority
    ) async throws -> (media: MediaResource, response: OpenedResponse)? {
        guard let beside else { return nil }
        let reader = MediaReader(
            media: self, range: .bytes(0..<0), priority: priority, chunkSize: 1, demand: demand)
        let response = try await reader.response()
        guard let version = response.version, beside.resource?.generation?.identifier == version else { return nil }
        return (beside, response)
    }

    /// Why the origin, which has sent nothing since, is asked again; nil where it is not.
    package var retryCause: CacheError? { resource?.lastRetryCause }

    /// What is asked for where nothing but the head is wanted.
    static let beginning = MediaRange.bytes(0..<1)

    /// As ``reader(_:chunkSize:)``, for a client that asks for more, or less, than is fresh (RFC 9111 §5.2.1). What it asks
    /// counts under ``FreshnessPolicy/http`` alone, but for `onlyIfCached` and `noStore`.
    package func reader(
        _ range: MediaRange = .all, priority: Priority = .playback, chunkSize: Int = 256 << 10,
        handsOutSlices: Bool = false, demand: FreshnessDemand,
        ahead: ReadAheadStart = .full
    ) -> MediaReader {
        MediaReader(
            media: self, range: range, priority: priority, chunkSize: chunkSize, handsOutSlices: handsOutSlices,
            demand: demand, ahead: ahead)
    }

    /// A reader of what is stored, be it fresh or not, which asks no origin: it throws `CacheError` with code `.notStored`
    /// where it is not all there.
    package func storedReader() -> MediaReader {
        var demand = FreshnessDemand()
        demand.onlyIfCached = true
        return MediaReader(
            media: self, range: .all, priority: .preload, chunkSize: 256 << 10, demand: demand, use: .stale)
    }

    /// A reader that uses the open version without asking the origin.
    ///
    /// Use it to read again from a response that was opened for a client. The client's directives have already decided
    /// whether that response may be used, and the decision must not be repeated without them.
    package func readerOfOpenVersion(_ range: MediaRange = .all) -> MediaReader {
        MediaReader(media: self, range: range, priority: .playback, chunkSize: 256 << 10, use: .stale)
    }

    /// Checks that a range can be had without the origin, where the demand is for that alone.
    ///
    /// - Throws: `CacheError` with code `.notStored` and status 504.
    func check(
        _ demand: FreshnessDemand, _ use: StoredFreshness.Use?, _ range: Range<Int64>, in resource: OpenResource
    ) throws {
        guard demand.onlyIfCached else { return }
        let isUsable = (use ?? resource.freshness.use(opening, demand)) != .ask
        guard !isUsable || !resource.scheduler.holds(range) else { return }
        throw CacheError(
            .notStored, "\(source.displayAddress): not to be asked for, and what is stored does not do", status: 504,
            key: key, range: range)
    }

    /// Asks the origin once, in the background, whether what is stored still holds (RFC 5861 §3).
    func revalidate(_ resource: OpenResource) {
        guard !resource.version.isUnprovable, resource.freshness.beginRevalidation() else { return }
        Task(executorPreference: resource.context.executor.executor(for: .background)) {
            let reader = MediaReader(media: self, range: Self.beginning, priority: .preload, chunkSize: 1, use: .ask)
            // What is stored stays stale where the origin can't be asked: the next use asks again.
            _ = try? await reader.response()
            resource.freshness.endRevalidation()
        }
    }

    /// From a moment in seconds since 1970 on, the origin is asked before what is stored is used; nothing changes for those
    /// who read it. Only under ``FreshnessPolicy/http``.
    package func limitUse(until moment: Int64) async throws {
        await FreshnessUpdate(resource: try await opened()).limitUse(until: moment)
    }

    /// Takes over what a response to `HEAD` says of the version that is stored; where it is of another one, what is stored
    /// is asked about before it is used again (RFC 9111 §4.3.5).
    ///
    /// - Parameters:
    ///   - url: Where it came from.
    ///   - requestDate: When it was asked for.
    package func update(byHead head: HTTPResponse, from url: URL, requestDate: Date) async throws {
        try await FreshnessUpdate(resource: try await opened())
            .update(byHead: head, for: credentials, from: url, requestDate: requestDate)
    }
}

import Foundation
import HTTPRanges
import HTTPTypes
import SpoolStorage

/// A change to the time for which the current version of a resource may be used, without a transfer.
struct FreshnessUpdate {
    let resource: OpenResource

    /// Applies the header fields of a response to a `HEAD` request. If they belong to a different version, the stored
    /// version has to be validated before its next use (RFC 9111 §4.3.5).
    ///
    /// - Parameters:
    ///   - credentials: The credentials of the source, with which the response was requested.
    ///   - url: The URL of the response.
    ///   - requestDate: The date of the request.
    func update(
        byHead head: HTTPResponse, for credentials: SourceCredentials, from url: URL, requestDate: Date
    ) async throws {
        let context = resource.context
        guard context.configuration.freshness == .http else { return }
        let asked = try await resource.variants.headerFields(of: credentials)
        await resource.evaluation.run(resource.key) {
            guard let generation = resource.generation else { return }
            let known = generation.resourceVersion
            let length = head.headerFields.contentLength
            let validator = Validator(fields: head.headerFields)
            let isOther =
                length != nil && known.length != nil && length != known.length
                || validator.contradicts(known.validator)
            // The origin may send any other status to one client only, so such a response does not affect the stored
            // version.
            guard head.status == .ok else { return }
            if !isOther {
                // Identical lengths do not prove that the versions are the same. Only a response to `GET` shows how
                // long a playlist may be used.
                guard validator.confirms(known.validator), generation.storedFreshness?.isUseLimited != true else {
                    return
                }
                var cacheability = ResponseCacheability(
                    policy: .http, request: asked, response: head, from: url, of: resource.redactedURL,
                    requestDate: requestDate, responseDate: context.clock.now(),
                    isOfSite: context.configuration.storesEveryStatus)
                cacheability.freshness.requesterHash = resource.freshness.requesterHash
                // No reader was waiting for this response, so it applies to no opening.
                resource.version.validated(generation, head.headerFields, cacheability, for: 0)
                resource.recordDescribed()
            } else {
                // The stored version has to be validated before its next use.
                limit(generation) { freshness in
                    freshness.freshUntil = 0
                    freshness.staleWhileRevalidate = nil
                }
            }
        }
    }

    /// Limits the time during which the stored version may be used without validation.
    ///
    /// - Parameter moment: The end of that time, in seconds since 1970.
    func limitUse(until moment: Int64) async {
        // Most calls change nothing, so they need not wait for responses that are being evaluated.
        if let current = resource.freshness.current, current.limited(until: moment) == current { return }
        await resource.evaluation.run(resource.key) {
            guard let generation = resource.generation else { return }
            limit(generation) { $0 = $0.limited(until: moment) }
        }
    }

    private func limit(_ generation: Generation, _ change: (inout StoredFreshness) -> Void) {
        guard var limited = generation.storedFreshness else { return }
        change(&limited)
        resource.freshness.limit(to: limited)
        generation.update(nil, limited)
    }
}

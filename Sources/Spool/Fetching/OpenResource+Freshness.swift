import ByteRanges
import Foundation
import HTTPRanges
import HTTPTypes
import SpoolStorage
import Synchronization

/// What changes or asks how long a version may be used, beside the responses that bring it.
extension OpenResource {
    /// Whether all of a range can be read without the origin, as far as it lies within the resource.
    func holds(_ range: Range<Int64>) -> Bool {
        scheduler.look { state in
            guard state.lease != nil else { return false }
            let end = min(range.upperBound, state.machine.length ?? .max)
            return range.lowerBound >= end || state.machine.landed.contains(range.lowerBound..<end)
        }
    }

    /// See ``MediaResource/update(byHead:from:requestDate:)``.
    ///
    /// - Parameter credentials: Those of the source, with whose fields it was asked for.
    func update(
        byHead head: HTTPResponse, for credentials: SourceCredentials, from url: URL, requestDate: Date
    ) async throws {
        guard context.configuration.freshness == .http else { return }
        let asked = try await variants.headerFields(of: credentials)
        await evaluation.run(key) {
            guard let generation else { return }
            let known = generation.resourceVersion
            let length = head.headerFields.contentLength
            let validator = Validator(fields: head.headerFields)
            let isOther =
                length != nil && known.length != nil && length != known.length
                || validator.contradicts(known.validator)
            if head.status == .ok, !isOther {
                // Equal lengths do not prove the same version, and only a GET shows how long a playlist may be used.
                guard validator.confirms(known.validator), generation.storedFreshness?.isUseLimited != true else {
                    return
                }
                let cacheability = ResponseCacheability(
                    policy: .http, request: asked, response: head, from: url, requestDate: requestDate,
                    responseDate: context.clock.now(), isOfSite: context.configuration.storesEveryStatus)
                validated(generation, head.headerFields, cacheability)
                noteDescribed()
            } else if head.status.kind != .serverError {
                expire(generation)
            }
        }
    }

    /// What is stored is asked about before it is used again.
    private func expire(_ generation: Generation) {
        limit(generation) { freshness in
            freshness.freshUntil = 0
            freshness.staleWhileRevalidate = nil
        }
    }

    /// See ``MediaResource/limitUse(until:)``.
    func limitUse(until moment: Int64) async {
        // Most calls change nothing, so they need not wait for responses that are being evaluated.
        if let current = freshness.current, current.limited(until: moment) == current { return }
        await evaluation.run(key) {
            guard let generation else { return }
            limit(generation) { $0 = $0.limited(until: moment) }
        }
    }

    private func limit(_ generation: Generation, _ change: (inout StoredFreshness) -> Void) {
        guard var limited = generation.storedFreshness else { return }
        change(&limited)
        freshness.limit(to: limited)
        generation.update(nil, limited)
    }
}

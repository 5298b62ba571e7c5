import ByteRanges
import HTTPRanges
import HTTPTypes
import SpoolScheduling
import SpoolStorage

/// The version of a resource that the origin currently sends. It provides the preconditions of requests, and applies
/// responses to the version.
///
/// This type does not depend on the readers, and does not store bytes.
struct CurrentVersion {
    let resource: OpenResource

    private var scheduler: Scheduler { resource.scheduler }

    /// The data from which the preconditions of a request are derived.
    struct RequestPreconditions {
        var generation: Generation?
        var stored: StoredVersion?
        var isValidation: Bool
        /// Whether it would be useful for the origin to confirm the stored version. If the version is an error, or is
        /// incomplete and can't be completed, the value is `false`, because the whole resource has to be requested.
        var mayBeConfirmed = true

        /// Returns the given header fields, with the preconditions and the range to request added.
        ///
        /// - Parameters:
        ///   - lower: The offset of the first byte.
        ///   - upper: The end of the range, exclusive; `nil` for the end of the resource.
        ///   - isRange: Whether to request a range even if it is the whole resource.
        func fields(adding lower: Int64, upper: Int64?, isRange: Bool, to fields: HTTPFields) -> HTTPFields {
            var fields = fields
            let validator = stored?.version.validator
            if isValidation, mayBeConfirmed {
                if let tag = validator?.entityTag?.text { fields[.ifNoneMatch] = tag }
                if let date = validator?.lastModified { fields[.ifModifiedSince] = date }
            }
            // The range is omitted, because a part could not be used, or because the resource is empty and has no
            // parts.
            if isValidation, !mayBeConfirmed || stored?.version.length == 0 { return fields }
            if let upper {
                fields[.range] = RangeHeader.text(for: lower..<upper)
            } else if isRange || lower > 0 {
                fields[.range] = RangeHeader.text(from: lower)
            }
            if !isValidation, let text = validator?.ifRangeText, fields[.range] != nil { fields[.ifRange] = text }
            return fields
        }
    }

    func preconditions(for id: TransferID) -> RequestPreconditions {
        let (generation, end, isValidation) = scheduler.basis(of: id)
        let stored = generation.map { StoredVersion(version: $0.resourceVersion, storedEnd: end) }
        let isPartOnly = generation.map { !canBeCompleted($0) && !isComplete($0) } ?? false
        let isError = generation?.isError ?? false
        return RequestPreconditions(
            generation: generation, stored: stored, isValidation: isValidation,
            mayBeConfirmed: !isPartOnly && !isError)
    }

    /// Returns whether a stored part of a version can be combined with the bytes of another response (RFC 9111 §3.4).
    func canBeCompleted(_ version: Generation) -> Bool {
        version.resourceVersion.canBeAssembled(under: resource.context.combiningRule) && !resource.versionsDisagree
    }

    /// Returns whether a part of the resource has to be requested as a separate version. This is the case if the
    /// current version can't be completed, and the part is neither stored nor being received.
    func isOtherPart(_ start: Int64, _ end: Int64?) -> Bool {
        guard let version = scheduler.generation, version.resourceVersion.acceptsRanges == true,
            !canBeCompleted(version)
        else { return false }
        let isWhole = start == 0 && end.map { $0 >= version.description.length ?? .max } ?? true
        return !isWhole && !scheduler.isProvided(start, end)
    }

    private func isComplete(_ version: Generation) -> Bool {
        guard let length = version.description.length else { return false }
        return version.storedRanges.contains(0..<length)
    }

    /// Whether revalidation would end readers, because nothing can prove that the response belongs to the version that
    /// they are reading.
    var isUnprovable: Bool {
        scheduler.feedingGeneration.map { !$0.resourceVersion.validator.canConfirm } ?? false
    }

    /// Replaces the version `previous` with a different version, or with no version. Readers of `previous` continue to
    /// read it.
    ///
    /// - Parameters:
    ///   - id: The transfer that receives the bytes of the new version.
    ///   - body: The body of that transfer's response.
    ///   - cacheability: The cacheability of the response that contains the new version, or `nil` if there is no new
    ///     version.
    ///   - openings: The number of the last opening to which the response applies; see
    ///     ``VersionFreshness/openingsOfRequest``.
    func replace(
        _ previous: Generation?, by lease: Lease?, keeping id: TransferID?, _ body: ResponseBody? = nil,
        confirmedBy cacheability: ResponseCacheability? = nil, for openings: Int? = nil
    ) {
        guard scheduler.replace(previous, by: lease, keeping: id, body) else { return }
        if let lease {
            if let cacheability { resource.freshness.confirm(cacheability.freshness, for: openings) }
            scheduler.recordFreshness(of: lease.generation)
        }
        resource.recordVersionChanged()
    }

    /// Records that the origin has confirmed the stored version.
    ///
    /// - Parameters:
    ///   - openings: The number of the last opening to which the response applies; see
    ///     ``VersionFreshness/openingsOfRequest``.
    ///   - mayKeep: Whether the fields of the response may be stored. The default is `true`. If the request contained
    ///     `no-store`, the confirmation applies only to the current readers (RFC 9111 §5.2.1.5).
    func validated(
        _ generation: Generation, _ fields: HTTPFields, _ cacheability: ResponseCacheability, for openings: Int?,
        mayKeep: Bool = true
    ) {
        guard mayKeep else {
            if let current = resource.freshness.current { resource.freshness.confirm(current, for: openings) }
            return scheduler.validated(generation)
        }
        guard cacheability.mayStore else {
            // No part of the response may be stored (RFC 9111 §5.2.2.5). The response confirms the version for the
            // readers that wait for it. The version is validated again before its next use.
            var current =
                resource.freshness.current
                ?? StoredFreshness(freshUntil: 0, mustRevalidate: true, vary: [], selected: "")
            current.freshUntil = 0
            current.mustRevalidate = true
            if resource.freshness.confirm(current, for: openings) { generation.update(nil, current) }
            return scheduler.validated(generation)
        }
        var cacheability = cacheability
        cacheability.freshness = cacheability.freshness(updating: resource.freshness.current)
        if generation.isError { cacheability.freshness.exclusion = .error }
        let known = generation.resourceVersion
        var version = known.confirmed(by: fields)
        // A 304 response has no body, so only its type is checked.
        let type = version.contentType
        if !resource.context.storesAnyResponse,
            !ContentTypes.isPlausible(type, startingWith: [], inPlaceOf: known.contentType)
        {
            version.contentType = known.contentType
        }
        if version != known, !cacheability.hasLongFields { generation.update(version, nil) }
        confirmed(by: cacheability, of: generation, for: openings)
        scheduler.validated(generation)
    }

    /// Records how long a version may be used, according to a response.
    ///
    /// - Parameter openings: The number of the last opening to which the response applies; see
    ///   ``VersionFreshness/openingsOfRequest``.
    func confirmed(by cacheability: ResponseCacheability, of generation: Generation, for openings: Int?) {
        guard resource.freshness.confirm(cacheability.freshness, for: openings) else { return }
        generation.update(nil, cacheability.freshness)
    }

    /// Records how long the version may be used, according to a response that a separate resource received.
    func adopt(_ freshness: StoredFreshness, of generation: Generation) {
        guard scheduler.generation === generation, resource.freshness.adopt(freshness) else { return }
        generation.update(nil, freshness)
    }

    /// Records the length of the resource, as stated by a response or as found at the end of its body.
    ///
    /// - Returns: The current version, or `nil` if there is none or the length exceeds the maximum offset.
    /// - Throws: `CacheError` with code `.resourceChanged` if bytes are stored beyond the length, because they belong
    ///   to another version.
    @discardableResult
    func recordLength(_ length: Int64, from id: TransferID) throws -> Generation? {
        guard length <= Block.offsetLimit else { return nil }
        let (isPlausible, generation) = scheduler.recordLength(length, from: id)
        guard isPlausible else {
            throw CacheError(
                .resourceChanged,
                "\(resource.redactedURL): the origin's body ended at byte \(length.grouped), but later bytes had already been received"
            )
        }
        if let generation, generation.description.length != length { generation.setLength(length) }
        resource.checkComplete()
        return generation
    }

    /// Marks the version as superseded, so that a different version is requested when the resource is opened later.
    func supersede(_ generation: Generation) {
        guard var freshness = generation.storedFreshness else { return }
        freshness.exclusion = .superseded
        generation.update(nil, freshness)
    }

    /// Records that a version is an error instead of media, so that later openings of the resource validate it.
    func recordError(_ generation: Generation) {
        guard var freshness = generation.storedFreshness else { return }
        freshness.exclusion = .error
        adopt(freshness, of: generation)
    }

    /// Removes a version that can't be completed. When the resource is opened later, a different version is requested.
    ///
    /// - Parameter id: The transfer that requests the same bytes again, or `nil` if different bytes are requested
    ///   instead.
    func abandon(_ generation: Generation, keeping id: TransferID?) {
        supersede(generation)
        replace(generation, by: nil, keeping: id)
    }

    /// Discards the version and its stored bytes, if a partial response was longer than the range in its
    /// `Content-Range`. The origin probably sent the whole resource, so its bytes were stored at the wrong offsets.
    ///
    /// - Parameter count: The number of bytes after the range. A few bytes, such as a line feed, do not count.
    /// - Returns: Whether the transfer `id` must request the bytes again.
    func discard(afterSurplus count: Int, of id: TransferID) -> Bool {
        guard count >= 1024, !scheduler.isStale(id) else { return false }
        if let generation = scheduler.generation {
            // Other transfers may be receiving such parts, and must not store them.
            abandon(generation, keeping: id)
            generation.discardBytes()
        }
        _ = scheduler.requestsWholeResource(evenAfterPart: true)
        let text = "the origin sent more bytes than Content-Range states, so the stored bytes were discarded"
        resource.send(.inconsistentResponse(text))
        return true
    }
}

import ByteRanges
import HTTPRanges
import HTTPTypes
import SpoolStorage

/// The version of a resource that the origin sends now: what requests depend on it, and how responses change it.
///
/// It knows no reader, and stores no bytes.
struct CurrentVersion {
    let resource: OpenResource

    private var scheduler: Scheduler { resource.scheduler }

    /// The facts from which a request's preconditions are made.
    struct RequestPreconditions {
        var generation: Generation?
        var stored: StoredVersion?
        var isValidation: Bool
        /// Whether it is of use that the origin confirms the stored version. It is not if an incomplete version can't be
        /// completed: the whole has to be requested.
        var mayBeConfirmed = true
    }

    func preconditions(for id: TransferID) -> RequestPreconditions {
        let (generation, end, isValidation) = scheduler.basis(of: id)
        let stored = generation.map { StoredVersion(version: $0.resourceVersion, storedEnd: end) }
        let isComplete = generation.map { version in
            version.description.length.map { version.landed.contains(0..<$0) } ?? false
        }
        let mayBeConfirmed = generation.map(canBeCompleted) ?? true || isComplete ?? false
        return RequestPreconditions(
            generation: generation, stored: stored, isValidation: isValidation, mayBeConfirmed: mayBeConfirmed)
    }

    /// Whether a stored part of a version can be combined with the bytes of another response (RFC 9111 §3.4).
    func canBeCompleted(_ version: Generation) -> Bool {
        version.resourceVersion.canBeAssembled(under: resource.context.combiningRule)
    }

    /// Whether revalidation would end readers, because nothing can prove that the response is of the version that they
    /// read.
    var isUnprovable: Bool {
        scheduler.feedingGeneration.map { !$0.resourceVersion.validator.canConfirm } ?? false
    }

    /// Replaces the version `former` with another one, or with none. Readers of `former` continue to read it.
    ///
    /// - Parameters:
    ///   - id: The transfer that receives the bytes of the new version, and `body` its body.
    ///   - cacheability: The cacheability of the response with the new version, or `nil` if there is no such response. It
    ///     takes effect together with the version.
    func replace(
        _ former: Generation?, by lease: Lease?, keeping id: TransferID?, _ body: ResponseBody? = nil,
        confirmedBy cacheability: ResponseCacheability? = nil
    ) {
        let isReplaced = scheduler.replace(former, by: lease, keeping: id, body) {
            if let cacheability { resource.freshness.confirm(cacheability.freshness) }
        }
        if isReplaced { resource.noteVersionChanged() }
    }

    /// The origin has confirmed that the stored version is current.
    func validated(_ generation: Generation, _ fields: HTTPFields, _ cacheability: ResponseCacheability) {
        let context = resource.context
        var cacheability = cacheability
        cacheability.freshness = cacheability.freshness(
            updating: resource.freshness.current, at: context.clock.secondsSince1970())
        if !cacheability.mayStore {
            // The version was stored when that was allowed. It is used this once, and validated before its next use.
            cacheability.freshness.freshUntil = 0
            cacheability.freshness.mustRevalidate = true
        }
        let known = generation.resourceVersion
        var version = known.confirmed(by: fields)
        if !context.keepsAnyResponse, !ContentTypes.isPlausible(version.contentType, inPlaceOf: known.contentType) {
            version.contentType = known.contentType
        }
        if version != known, !cacheability.hasLongFields { generation.update(version, nil) }
        confirmed(by: cacheability, of: generation)
        scheduler.validated(generation)
    }

    /// A response states how long its version may be used from now on.
    func confirmed(by cacheability: ResponseCacheability, of generation: Generation) {
        if resource.freshness.confirm(cacheability.freshness) { generation.update(nil, cacheability.freshness) }
    }

    /// A response contains the length of the resource, or its body has ended there.
    ///
    /// - Throws: `CacheError` with code `.resourceChanged` if bytes are stored beyond it, because they are of another
    ///   version.
    func learn(length: Int64, from id: TransferID) throws {
        guard length <= Block.offsetLimit else { return }
        let (isPlausible, generation) = scheduler.learn(length: length, from: id)
        guard isPlausible else {
            throw CacheError(
                .resourceChanged,
                "\(resource.address): the origin's body ended at byte \(length.grouped), although more had been received"
            )
        }
        if let generation, generation.description.length != length { generation.learn(length: length) }
        resource.checkComplete()
    }
}

import ByteRanges
import Foundation
import HTTPRanges
import HTTPTypes
import SpoolScheduling
import SpoolStorage

/// The evaluation of one response against the stored version. It adopts the version that the response contains.
///
/// This type does not store bytes, and does not depend on the readers.
struct ResponseEvaluation {
    let resource: OpenResource
    let head: HTTPResponse
    let start: TransferStart
    /// The offset from which bytes were requested, or `nil` if the whole resource was requested.
    let requestedStart: Int64?
    /// Whether the request contained `If-Range`.
    let hasIfRange: Bool
    /// Whether the request contained `If-None-Match` or `If-Modified-Since`.
    let isConditional: Bool
    /// Whether the origin has rejected the range of an earlier form of the request.
    let rejectsRanges: Bool
    let cacheability: ResponseCacheability
    /// The number of the last opening to which the response applies; see ``VersionFreshness/openingsOfRequest``.
    let openings: Int?
    /// The source's header fields with which the response was requested.
    let fields: HTTPFields

    /// The start of the body; empty if the headers show whether the body is media.
    let firstBytes: [UInt8]

    /// The result of the evaluation for the transfer that requested the response.
    enum Verdict {
        /// Bytes of the body have to be stored. The first value is the offset at which the body starts.
        case store(from: Int64, ResponseBody)
        /// The bytes can't be used, but the same bytes may be requested again immediately.
        case restart
        /// The requested bytes do not exist. Contains the length of the resource, if the origin sent it.
        case unsatisfiable(length: Int64?)
        /// The body of the response can't be used.
        case refuse(PartialResponse.Refusal)
    }

    private var scheduler: Scheduler { resource.scheduler }
    private var context: CacheContext { resource.context }
    private var redactedURL: String { resource.redactedURL }
    private var keepsAnything: Bool { context.storesAnyResponse }

    /// Evaluates the response against the stored version, and adopts the version that it contains.
    ///
    /// - Returns: ``Verdict/restart`` if the whole version has to be requested, or if a different version has become
    ///   current. This verdict is also returned if nothing proves that the bytes belong to the version that readers are
    ///   receiving.
    func run() async throws -> Verdict {
        // Responses are evaluated one at a time. Otherwise two initial transfers could each start a version. Nothing
        // here may call the app, whose resolver may never return.
        try await resource.evaluation.runUnlessCancelled(resource.key) { try await evaluate() }
    }

    private func evaluate() async throws -> Verdict {
        guard !scheduler.isStale(start.id) else {
            // The bytes can no longer be used, but `Retry-After` still applies.
            let decision = PartialResponse.evaluate(
                head, requestedStart: requestedStart, requestedEnd: start.upper, stored: nil, rule: .strong)
            if case .refuse(let refusal) = decision, case .retry = refusal.kind { return .refuse(refusal) }
            return .restart
        }
        // The cookies are recorded before a reader can use the version.
        if context.configuration.storesEveryStatus {
            resource.lastResponse.recordCookies(
                of: head, for: start.credentials.source, at: context.clock.elapsed())
        }
        let current = resource.version.preconditions(for: start.id)
        let otherStatus = otherStatus(replacing: current.generation)
        // An error does not describe the media. Readers of the same error may continue.
        let isError =
            current.isValidation && current.generation?.isError == true && !isSame(current.stored?.version)
        var decision =
            otherStatus
            ?? PartialResponse.evaluate(
                head, requestedStart: requestedStart, requestedEnd: start.upper, stored: isError ? nil : current.stored,
                rule: rule)
        // The origin responds to a conditional request with a whole body only if the bytes have changed, regardless of
        // the validator (RFC 9111 §4.3.3). The bytes of a live stream have also changed, even though no validator
        // indicates it.
        let isLive = current.isValidation && current.generation?.mayBeLive == true
        var isReplacement = (isConditional || isLive) && head.status == .ok && current.stored != nil
        if case .store(let placement) = decision {
            // A part that is the whole resource is like a 200, unless a strong validator proves that the bytes are the
            // same. Some origins ignore conditions in requests with a range.
            let isWholePart =
                isConditional && head.status == .partialContent && placement.containsAllBytes
                && !placement.version.validator.isStrong
            isReplacement = isReplacement || isError || isWholePart
            if isReplacement || isOtherUsers(placement, than: current.generation) {
                decision = .newGeneration(placement)
            }
        }
        let isUnproven =
            otherStatus == nil && current.stored.map { isReplacement || self.isUnproven(decision, $0) } ?? false
        let differsWeakly = otherStatus == nil && current.stored.map { self.differsWeakly(decision, $0) } ?? false
        let mustNotEndReaders = isUnproven || differsWeakly || isForeignPart(decision)
        if mustNotEndReaders, scheduler.handleUnconfirmedResponse(to: start.id, removing: nil, body: nil) {
            return .restart
        }
        let verdict: Verdict
        switch decision {
        // Readers that wait for the headers are woken when the body starts.
        case .store(let placement):
            return try await accept(placement, isNew: false, isUnproven: isUnproven, current: current.generation)
        case .newGeneration(let placement):
            return try await accept(placement, isNew: true, isUnproven: isUnproven, current: current.generation)
        case .restart(let reason):
            if let generation = current.generation { abandon(generation, reason, keeping: start.id) }
            verdict = .restart
        case .notModified:
            if let generation = current.generation {
                resource.version.validated(
                    generation, head.headerFields, cacheability, for: openings, mayKeep: start.mayKeep)
            }
            verdict = .restart
        case .unsatisfiable(let length): verdict = .unsatisfiable(length: length)
        case .refuse(let refusal): verdict = .refuse(refusal)
        }
        resource.recordDescribed()
        return verdict
    }

    /// Adopts the version of a response that contains bytes.
    ///
    /// - Parameter isNew: Whether the version differs from the stored one.
    private func accept(
        _ placement: PartialResponse.BodyPlacement, isNew: Bool, isUnproven: Bool, current: Generation?
    ) async throws -> Verdict {
        try check(placement, replacing: current)
        let body = body(placement, isNew: isNew)
        let isWhole = placement.containsAllBytes
        if head.status.code == 206, !isWhole, !placement.version.canBeAssembled(under: rule) {
            // The part is a separate version. If it does not contain all bytes that readers need, the whole resource is
            // requested. If the whole resource was already requested, the origin would send the same part again.
            guard requestedStart != nil else {
                let reason = "206: a part without a strong validator, but the whole resource was requested"
                return .refuse(.init(kind: .malformed, status: 206, reason: reason))
            }
            guard current == nil, servesReaders(placement) else {
                scheduler.recordMissingRangeSupport()
                return .restart
            }
        }
        if isNew, !isUnproven, let current {
            resource.recordVersionChange(from: current)
            if head.status.code == 206, !isWhole, resource.versionChanges > 0, !servesReaders(placement) {
                // The next response may contain yet another version, so all bytes are requested together.
                abandon(current, "the origin responded with a different version", keeping: nil)
                return .restart
            }
        }
        if isNew, current != nil, resource.versionsDisagree {
            scheduler.recordMissingRangeSupport()
            if head.status.code == 206, !isWhole { return .restart }
        }
        if let discrepancy = placement.discrepancy { resource.send(.inconsistentResponse(discrepancy)) }
        if !isNew, let current, cacheability.mayStore || !current.isKept {
            update(current, to: placement.version)
        } else {
            // A reader may have started to read since the first check.
            if isUnproven, let current, scheduler.handleUnconfirmedResponse(to: start.id, removing: current, body: body)
            {
                return .restart
            }
            if current != nil, !isUnproven {
                resource.send(.originChanged(reason: "the origin responded with a different version"))
            }
            try await begin(placement.version, body, replacing: current)
        }
        return .store(from: placement.offset, body)
    }

    /// Returns the properties of the body, according to the headers.
    ///
    /// - Parameter isNew: Whether the body starts a version of which no byte is stored.
    private func body(_ placement: PartialResponse.BodyPlacement, isNew: Bool) -> ResponseBody {
        let isCombinable = placement.version.canBeAssembled(under: rule)
        let isWhole = head.status != .partialContent || placement.containsAllBytes && !isCombinable
        let asked: Int64? = if isNew { placement.offset == 0 ? 0 : nil } else { isWhole ? nil : start.lower }
        let isPart = start.lower > 0 || start.upper.map { $0 < placement.version.length ?? .max } ?? false
        // With `If-Range`, a whole body that belongs to a different version does not show that the origin ignores
        // ranges. If all bytes were requested, a whole body is also a normal response from an origin that supports
        // ranges.
        let showsIgnorance =
            requestedStart != nil && (isPart || placement.version.acceptsRanges != true) && !(isNew && hasIfRange)
        let ignoresRanges = head.status == .ok && (showsIgnorance || placement.version.acceptsRanges == false)
        let areRangesUseless = ignoresRanges || rejectsRanges || !isCombinable
        return ResponseBody(
            offset: Transfer.StateMachine.firstStoredOffset(offset: placement.offset, end: placement.end, asked: asked),
            end: placement.end, isWhole: isWhole,
            support: areRangesUseless
                ? .unsupported : isWhole || placement.discrepancy != nil ? nil : .supported)
    }

    /// Abandons the stored version, because it can't be completed.
    ///
    /// - Parameter id: The transfer that requests the same bytes again, or `nil` if different bytes are requested
    ///   instead.
    private func abandon(_ generation: Generation, _ reason: String, keeping id: TransferID?) {
        resource.send(.originChanged(reason: reason))
        // The next reader must not receive the same rejection again.
        resource.version.abandon(generation, keeping: id)
    }

    private var rule: CombiningRule { context.combiningRule }

    /// Returns whether a strong validator proves that the response contains the same bytes, with the same type.
    private func isSame(_ version: ResourceVersion?) -> Bool {
        guard let version else { return false }
        return Validator(fields: head.headerFields).stronglyMatches(version.validator)
            && head.headerFields[.contentType] == version.contentType
    }

    /// Returns whether a response counts as a different version only because weak validators differ. Some origins send
    /// a different weak validator with each response.
    private func differsWeakly(_ decision: PartialResponse.Decision, _ stored: StoredVersion) -> Bool {
        guard case .newGeneration(let placement) = decision else { return false }
        return !(placement.version.validator.isStrong && stored.version.validator.isStrong)
    }

    /// Returns whether a response counts as a different version only because nothing proves that it belongs to the
    /// stored version.
    private func isUnproven(_ decision: PartialResponse.Decision, _ stored: StoredVersion) -> Bool {
        switch decision {
        case .newGeneration(let placement): placement.isUnproven(against: stored, rule: rule)
        case .restart: head.status == .partialContent
        default: false
        }
    }

    /// Returns whether a part belongs to a version other than the stored one. If the origin sends each part with a
    /// different validator, the readers of the stored version must not be ended.
    private func isForeignPart(_ decision: PartialResponse.Decision) -> Bool {
        guard case .newGeneration = decision else { return false }
        return head.status == .partialContent
    }

    /// Returns whether the response contains all bytes that the players need, so that it can be a separate version.
    /// Returns `false` for preloads, which need the whole resource.
    private func servesReaders(_ placement: PartialResponse.BodyPlacement) -> Bool {
        guard start.priority == .playback, let end = placement.end else { return false }
        return scheduler.serves(placement.offset..<end, placement.version.length)
    }

    /// Returns the decision on a response whose status indicates an error for media, if responses with any status are
    /// stored.
    ///
    /// The response becomes a separate version if it is a success or may be used again, but it does not replace media.
    /// A response that contains media replaces such a version.
    private func otherStatus(replacing current: Generation?) -> PartialResponse.Decision? {
        guard keepsAnything else { return nil }
        let status = head.status.code
        let stored = current?.storedFreshness?.head?.status ?? 200
        if status == 200 || status == 206 {
            guard stored != 200 else { return nil }
            let decision = PartialResponse.evaluate(
                head, requestedStart: nil, requestedEnd: nil, stored: nil, rule: .strong)
            if case .store(let placement) = decision { return .newGeneration(placement) }
            return decision
        }
        guard status != 304, status != 416, current == nil || stored != 200,
            (200...299).contains(status)
                || cacheability.mayStore && cacheability.freshness.freshUntil > context.clock.secondsSince1970()
        else { return nil }
        let hasBody = status != 204 && status != 205
        let length = hasBody ? head.headerFields.contentLength : 0
        var version = ResourceVersion(fields: head.headerFields, length: length)
        version.acceptsRanges = nil
        let placement = PartialResponse.BodyPlacement(offset: 0, end: length, version: version)
        return current == nil ? .store(placement) : .newGeneration(placement)
    }

    /// Returns whether a whole response without a strong entity tag is for a different user than the stored response.
    ///
    /// Responses to different users may have the same date or weak tag. Each user receives the response to the user's
    /// own request (RFC 9111 §4.3.3).
    private func isOtherUsers(_ placement: PartialResponse.BodyPlacement, than current: Generation?) -> Bool {
        guard head.status == .ok, placement.version.validator.entityTag?.isWeak != false,
            let requesterHash = resource.freshness.requesterHash, let other = current?.storedFreshness?.requesterHash
        else { return false }
        return requesterHash != other
    }

    private func check(_ placement: PartialResponse.BodyPlacement, replacing current: Generation?) throws {
        guard keepsAnything || placement.version.contentEncoding == nil else {
            throw CacheError(
                .malformedResponse, "\(redactedURL): the origin sent a compressed response, but none was requested",
                status: head.status.code)
        }
        let previous = current?.description.contentType
        let type = placement.version.contentType
        guard keepsAnything || ContentTypes.isPlausible(type, startingWith: firstBytes, inPlaceOf: previous) else {
            throw CacheError(
                .malformedResponse,
                "\(redactedURL): the origin sent \(type ?? "an unknown type") instead of \(previous ?? "media")"
            )
        }
    }

    private func update(_ current: Generation, to version: ResourceVersion) {
        var version = version
        let known = current.resourceVersion
        version.length = version.length ?? known.length
        version.contentType = version.contentType ?? known.contentType
        if version != known { current.update(version, nil) }
        var cacheability = cacheability
        if let stored = current.storedFreshness {
            cacheability.freshness = cacheability.combined(with: stored)
            if current.isError { cacheability.freshness.exclusion = .error }
        }
        resource.version.confirmed(by: cacheability, of: current, for: openings)
        scheduler.continued(current, length: version.length)
        resource.checkComplete()
    }

    private func begin(_ version: ResourceVersion, _ body: ResponseBody, replacing current: Generation?) async throws {
        let isPage = !keepsAnything && ContentTypes.isDocument(version.contentType, startingWith: firstBytes)
        // Subtitles may be empty, but audio and video without an entity tag are probably not ready yet.
        let isEmpty =
            !keepsAnything && version.length == 0 && version.validator.entityTag == nil
            && ContentTypes.isAudioOrVideo(version.contentType) && !start.credentials.source.isDownload
        if isPage {
            let text =
                "\(redactedURL) is played without being cached: the origin sent a web page or an error message, not media"
            resource.send(.notCached(cause: CacheError(.malformedResponse, text)))
        }
        if isEmpty { resource.sendEmptyResponse() }
        if cacheability.hasLongFields {
            let limit = StoredHead.limit
            let text =
                "\(redactedURL) is played without being cached: the response's header fields exceed \(limit.counted("byte"))"
            resource.send(.notCached(cause: CacheError(.malformedResponse, text)))
        }
        var cacheability = cacheability
        let changes = resource.versionChanges
        // A client that opens the resource later requests it again, because the error may have ended.
        if isPage || isEmpty { cacheability.freshness.exclusion = .error }
        var freshness = cacheability.freshness
        freshness.versionChanges = changes > 0 ? changes : nil
        let isKept = cacheability.mayStore && start.mayKeep && !isPage && !isEmpty && !resource.isUncached
        let description = GenerationDescription(
            length: version.length, contentType: version.contentType, version: version.encoded,
            fields: freshness.encoded)
        let lease = try await resource.variants.begin(
            description, for: start.credentials, requestedWith: fields, isKept: isKept, replacing: current)
        resource.version.replace(
            current, by: lease, keeping: start.id, body, confirmedBy: cacheability, for: openings)
        resource.recordStorage(inMemory: !lease.generation.isKept)
    }
}

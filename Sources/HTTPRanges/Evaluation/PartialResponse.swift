import ByteRanges
package import HTTPTypes

/// The evaluation of an origin's responses: whether the bytes of the body may be stored, and at which offset.
///
/// Players request parts of a file. The response may contain a different part, the whole file or a different version,
/// or may contradict itself. ``evaluate(_:requestedStart:requestedEnd:stored:rule:)`` uses only the headers, and does
/// not read the body. The function has no side effects: the same headers always result in the same decision, and
/// invalid headers do not cause a crash.
package enum PartialResponse {
    /// The position of a response's body.
    package struct BodyPlacement: Sendable, Hashable {
        /// The offset of the first byte of the body, always as the response states it, never as it was requested.
        package var offset: Int64
        /// The end of the body. Later bytes must not be stored.
        ///
        /// The value is `nil` if the headers do not state the end. In that case, if the body contains the whole
        /// resource and is received completely, its end is the length. The end of an interrupted body proves nothing.
        package var end: Int64?
        /// The version of the bytes. If the bytes are combined with stored ones, this version combines both
        /// descriptions, and replaces the stored one.
        package var version: ResourceVersion
        /// A sentence for an event if the response contradicts itself and only its consistent part is stored; otherwise
        /// `nil`.
        package var discrepancy: String?

        /// Whether the headers state that the body contains the whole resource.
        package var containsAllBytes: Bool { offset == 0 && end != nil && end == version.length }

        /// Creates a placement.
        package init(offset: Int64, end: Int64?, version: ResourceVersion, discrepancy: String? = nil) {
            self.offset = offset
            self.end = end
            self.version = version
            self.discrepancy = discrepancy
        }
    }

    /// The decision on how to use a response.
    package enum Decision: Sendable, Hashable {
        /// The body belongs to the stored version, or nothing was stored.
        case store(BodyPlacement)
        /// The body belongs to a different version, or can't be proved to belong to the stored one. Store it as a new
        /// generation.
        case newGeneration(BodyPlacement)
        /// The body must not be stored, and the stored version can't be continued. The sentence gives the reason.
        ///
        /// Request the resource again from byte 0, without `If-Range`. Also omit `Range`, unless
        /// ``ResourceVersion/canBeAssembled(under:)`` returns `true`.
        case restart(String)
        /// 304: the stored version is still current.
        case notModified
        /// A 416 that does not contradict the stored bytes: the requested bytes do not exist. The associated value is
        /// the length, if known.
        case unsatisfiable(length: Int64?)
        /// The response has no usable body. Stored bytes stay unchanged.
        case refuse(Refusal)
    }

    /// The reason why a response is not usable.
    package struct Refusal: Sendable, Hashable {
        /// The kind of refusal, which determines what may help.
        package enum Kind: Sendable, Hashable {
            /// 401, 403, 407, 410: new credentials or a new URL may help.
            case credentials
            /// 408, 425, 429, 5xx: waiting may help, for the time that the origin specifies.
            case retry(after: RetryAfter?)
            /// Any other status without media. A retry would not help.
            case status
            /// The response contradicts itself or the request: another request may help.
            case malformed
        }

        /// The kind of refusal, which determines what may help.
        package var kind: Kind
        /// The status code of the response.
        package var status: Int
        /// A sentence about the problem, without a URL or credentials.
        package var reason: String

        /// Creates a refusal.
        package init(kind: Kind, status: Int, reason: String) {
            self.kind = kind
            self.status = status
            self.reason = reason
        }
    }
}

extension PartialResponse {
    /// Evaluates the response to a `GET` by its headers.
    ///
    /// - Parameters:
    ///   - response: The status and fields of the final response, after redirects.
    ///   - requestedStart: The first requested byte; `nil` if there is no `Range` header, or if the position of a
    ///     suffix (`bytes=-500`) is unknown.
    ///   - requestedEnd: The end of the requested range, half-open; `nil` for an open end.
    ///   - stored: The version to continue; `nil` if no bytes are stored or in transit.
    ///   - rule: The rule for combining bytes of two responses.
    ///
    /// The less obvious cases:
    /// - A 206 is stored at its `Content-Range` if that is part of the requested range. Otherwise, it is rejected (RFC
    ///   9110 §15.3.7). If the `Content-Range` is missing or malformed, a body with the length of the requested range
    ///   is treated as that range.
    /// - A 200 is stored from byte 0, whatever was requested. So is a 203, which a transforming proxy sends (§15.3.4).
    /// - A total length other than the stored one indicates a different version, even with the same entity tag.
    /// - If nothing proves that the versions are the same or differ, the rule `.immutable` combines the bytes. The
    ///   validator becomes weak, because it no longer applies to all bytes. The rule `.strong` stores the response as a
    ///   new generation if it starts at byte 0, and otherwise restarts.
    /// - The offsets in a response with a `Content-Encoding` (RFC 9110 §8.4) do not match the requested ones, so a 206
    ///   is rejected. A 200 is stored if nothing is stored, or if the stored bytes have the same encoding. It is
    ///   combined with the stored bytes only if it has the same strong validator. Readers of such a version must handle
    ///   its encoding.
    /// - A 304 with the validator of a different version results in a restart.
    /// - A 416 (§15.5.17) results in a restart if its length is not the stored one, or is less than the end of the
    ///   stored bytes.
    package static func evaluate(
        _ response: HTTPResponse, requestedStart: Int64?, requestedEnd: Int64?, stored: StoredVersion?,
        rule: CombiningRule
    ) -> Decision {
        var stored = stored
        if let length = stored?.version.length, length < 0 { stored?.version.length = nil }
        let head = Head(
            response: response, requestedStart: requestedStart.map { max(0, $0) }, requestedEnd: requestedEnd)
        do throws(BodyClaim.Contradiction) {
            switch response.status.code {
            case 200, 203: return try head.evaluateWhole(stored: stored, rule: rule)
            case 206: return try head.evaluatePart(stored: stored, rule: rule)
            case 304: return try head.evaluateNotModified(stored: stored)
            case 416: return try head.evaluateUnsatisfiable(stored: stored)
            case 401, 403, 407, 410:
                return head.refuse(.credentials, "the origin denies access, or the resource is gone")
            case let status where StatusRules.isTemporaryFailure(status):
                let after = response.headerFields[values: .retryAfter].first.flatMap { RetryAfter(parsing: $0) }
                return head.refuse(.retry(after: after), "the origin can't respond now")
            default:
                return head.refuse(.status, "expected 200 or 206")
            }
        } catch {
            return head.refuse(.malformed, error.reason)
        }
    }

    /// The headers of a response, and the requested range.
    private struct Head {
        var response: HTTPResponse
        var requestedStart: Int64?
        var requestedEnd: Int64?

        var fields: HTTPFields { response.headerFields }

        func refuse(_ kind: Refusal.Kind, _ reason: String) -> Decision {
            .refuse(Refusal(kind: kind, status: response.status.code, reason: "\(response.status.code): \(reason)"))
        }

        func evaluateWhole(stored: StoredVersion?, rule: CombiningRule) throws(BodyClaim.Contradiction) -> Decision {
            let claim = try BodyClaim(whole: fields)
            let version = ResourceVersion(fields: fields, length: claim.length)
            if let encoding = version.contentEncoding, let stored, stored.version.contentEncoding != encoding {
                throw BodyClaim.Contradiction(reason: "Content-Encoding \(encoding), which was not requested")
            }
            var placement = BodyPlacement(offset: 0, end: claim.end, version: version, discrepancy: claim.discrepancy)
            guard let stored else { return .store(placement) }
            switch VersionMatch(of: placement, to: stored, rule: rule) {
            case .same(let merged):
                placement.version = merged
                placement.end = claim.end ?? merged.length
                return .store(placement)
            case .unproven, .different: return .newGeneration(placement)
            }
        }

        func evaluatePart(stored: StoredVersion?, rule: CombiningRule) throws(BodyClaim.Contradiction) -> Decision {
            let claim = try BodyClaim(partial: fields, requestedStart: requestedStart, requestedEnd: requestedEnd)
            var version = ResourceVersion(fields: fields, length: claim.length)
            version.acceptsRanges = true
            if let encoding = version.contentEncoding {
                throw BodyClaim.Contradiction(
                    reason: "a part with Content-Encoding \(encoding), which was not requested")
            }
            let end = claim.end ?? .max
            guard claim.offset < (requestedEnd ?? .max), end > requestedStart ?? 0 else {
                let start = requestedStart ?? 0
                let requested = start..<max(start, requestedEnd ?? .max)
                throw BodyClaim.Contradiction(
                    reason: "the response starts at byte \(claim.offset.grouped), but the request was for "
                        + requested.inWords)
            }
            var placement = BodyPlacement(
                offset: claim.offset, end: claim.end, version: version, discrepancy: claim.discrepancy)
            guard let stored else {
                // The length is ignored if the headers contradict each other.
                if claim.discrepancy != nil { placement.version.length = nil }
                return .store(placement)
            }
            switch (VersionMatch(of: placement, to: stored, rule: rule), claim.discrepancy) {
            case (.same(let merged), let discrepancy):
                placement.version = merged
                if discrepancy != nil { placement.version.length = stored.version.length }
                return .store(placement)
            case (_, let discrepancy?):
                throw BodyClaim.Contradiction(reason: discrepancy)
            case (.different, nil):
                return .newGeneration(placement)
            case (.unproven, nil):
                if claim.offset == 0 || stored.storedEnd <= 0 { return .newGeneration(placement) }
                return .restart("the bytes at offset \(claim.offset) may belong to a version other than the stored one")
            }
        }

        func evaluateNotModified(stored: StoredVersion?) throws(BodyClaim.Contradiction) -> Decision {
            guard let stored else { throw BodyClaim.Contradiction(reason: "not modified, but nothing is stored") }
            if Validator(fields: fields).contradicts(stored.version.validator) {
                // The next request has no conditions, so that it receives the origin's current version (RFC 9111
                // §4.3.4).
                return .restart("the origin confirmed a version other than the stored one")
            }
            return .notModified
        }

        func evaluateUnsatisfiable(stored: StoredVersion?) throws(BodyClaim.Contradiction) -> Decision {
            let length = try BodyClaim.contentRange(fields)?.length
            if let length, let stored {
                if let known = stored.version.length, known != length {
                    return .restart("the length changed from \(known.grouped) to \(length.counted("byte"))")
                }
                if length < stored.storedEnd {
                    return .restart(
                        "the length is \(length.counted("byte")), but bytes up to offset \(stored.storedEnd.grouped) "
                            + "are stored")
                }
            }
            if let requestedStart, requestedStart < requestedEnd ?? .max {
                if let length, requestedStart < length {
                    throw BodyClaim.Contradiction(
                        reason: "byte \(requestedStart.grouped) is not available, but the length is "
                            + length.counted("byte"))
                }
                if length == nil, let stored, requestedStart < max(stored.version.length ?? 0, stored.storedEnd) {
                    return .restart("the origin no longer has the bytes from offset \(requestedStart.grouped)")
                }
            }
            return .unsatisfiable(length: length ?? stored?.version.length)
        }
    }
}

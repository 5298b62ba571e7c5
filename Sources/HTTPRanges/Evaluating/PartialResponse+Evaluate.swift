package import HTTPTypes

extension PartialResponse {
    /// Decides about the response to a `GET`, from its head alone.
    ///
    /// - Parameters:
    ///   - response: status and fields of the final response, after redirects.
    ///   - askedFrom: the first byte that was asked for; nil if there was no `Range` header, or a suffix of unknown
    ///     place was asked for (`bytes=-500`).
    ///   - askedEnd: the end of what was asked for, half-open; nil for an open end.
    ///   - stored: the version to go on with, if bytes of one are held or on their way.
    ///   - rule: when bytes of two responses may be put together.
    ///
    /// The less obvious responses:
    /// - A 206 lands where its `Content-Range` says, if that is some of what was asked for; else it is refused
    ///   (RFC 9110 §15.3.7).
    /// - A 200 lands from byte 0, whatever was asked for.
    /// - A total other than the stored length is another version, also under the same entity tag.
    /// - If nothing contradicts and nothing proves sameness, rule `.immutable` lets bytes join; the validator is then
    ///   kept as a weak one, for it no longer vouches for all of them. Rule `.strong` gives the response a generation of
    ///   its own if it starts at byte 0, and otherwise asks to restart.
    /// - A response with a `Content-Encoding` (RFC 9110 §8.4) counts other bytes than those that were asked for: a 206
    ///   is refused; a 200 lands only where nothing is stored, or where what is stored has the same encoding, and it
    ///   joins that only with the same strong validator. Whoever opens such a version must see to its encoding.
    /// - 416 (§15.5.17): a length that is not the stored one, or that lies below what is stored, means restart.
    package static func evaluate(
        _ response: HTTPResponse, askedFrom: Int64?, askedEnd: Int64?, stored: StoredVersion?, rule: CombiningRule
    ) -> Decision {
        var stored = stored
        if let length = stored?.version.length, length < 0 { stored?.version.length = nil }
        let head = Head(response: response, askedFrom: askedFrom.map { max(0, $0) }, askedEnd: askedEnd)
        do throws(BodyClaim.Contradiction) {
            switch response.status.code {
            case 200: return try head.evaluateWhole(stored: stored, rule: rule)
            case 206: return try head.evaluatePart(stored: stored, rule: rule)
            case 304: return try head.evaluateNotModified(stored: stored)
            case 416: return try head.evaluateUnsatisfiable(stored: stored)
            case 401, 403, 407, 410:
                return head.refuse(.credentials, "the origin denies access or says the URL is gone")
            case let status where StatusRules.isRefusalForNow(status):
                let after = response.headerFields[values: .retryAfter].first.flatMap { RetryAfter(parsing: $0) }
                return head.refuse(.retry(after: after), "the origin can't respond now")
            default:
                return head.refuse(.status, "the status brings no media")
            }
        } catch {
            return head.refuse(.malformed, error.reason)
        }
    }

    /// A response's head, and what it responds to.
    private struct Head {
        var response: HTTPResponse
        var askedFrom: Int64?
        var askedEnd: Int64?

        var fields: HTTPFields { response.headerFields }

        func refuse(_ kind: Refusal.Kind, _ reason: String) -> Decision {
            .refuse(Refusal(kind: kind, status: response.status.code, reason: "\(response.status.code): \(reason)"))
        }

        func evaluateWhole(stored: StoredVersion?, rule: CombiningRule) throws(BodyClaim.Contradiction) -> Decision {
            let claim = try BodyClaim(whole: fields)
            let version = ResourceVersion(fields: fields, length: claim.length)
            if let encoding = version.contentEncoding, let stored, stored.version.contentEncoding != encoding {
                throw BodyClaim.Contradiction(reason: "Content-Encoding \(encoding), which was not asked for")
            }
            var landing = Landing(offset: 0, end: claim.end, version: version, discrepancy: claim.discrepancy)
            guard let stored else { return .land(landing) }
            switch VersionMatch(of: landing, to: stored, rule: rule) {
            case .same(let merged):
                landing.version = merged
                landing.end = claim.end ?? merged.length
                return .land(landing)
            case .unproven, .different: return .newGeneration(landing)
            }
        }

        func evaluatePart(stored: StoredVersion?, rule: CombiningRule) throws(BodyClaim.Contradiction) -> Decision {
            let claim = try BodyClaim(partial: fields)
            var version = ResourceVersion(fields: fields, length: claim.length)
            version.acceptsRanges = true
            if let encoding = version.contentEncoding {
                throw BodyClaim.Contradiction(reason: "a part with Content-Encoding \(encoding), not asked for")
            }
            let end = claim.end ?? .max
            guard claim.offset < (askedEnd ?? .max), end > askedFrom ?? 0 else {
                let asked = "\(askedFrom ?? 0) \(askedEnd.map { "up to \($0)" } ?? "on")"
                throw BodyClaim.Contradiction(
                    reason: "bytes from \(claim.offset) on came, where bytes from \(asked) were asked for")
            }
            var landing = Landing(
                offset: claim.offset, end: claim.end, version: version, discrepancy: claim.discrepancy)
            guard let stored else {
                // A head that contradicts itself is not believed as to the length.
                if claim.discrepancy != nil { landing.version.length = nil }
                return .land(landing)
            }
            switch (VersionMatch(of: landing, to: stored, rule: rule), claim.discrepancy) {
            case (.same(let merged), let discrepancy):
                landing.version = merged
                if discrepancy != nil { landing.version.length = stored.version.length }
                return .land(landing)
            case (_, let discrepancy?):
                throw BodyClaim.Contradiction(reason: discrepancy)
            case (.different, nil):
                return .newGeneration(landing)
            case (.unproven, nil):
                if claim.offset == 0 || stored.storedEnd <= 0 { return .newGeneration(landing) }
                return .restart("nothing proves that bytes from \(claim.offset) on are of the stored version")
            }
        }

        func evaluateNotModified(stored: StoredVersion?) throws(BodyClaim.Contradiction) -> Decision {
            guard let stored else { throw BodyClaim.Contradiction(reason: "not modified, but nothing is stored") }
            if Validator(fields: fields).contradicts(stored.version.validator) {
                throw BodyClaim.Contradiction(reason: "not modified, but of another version than the stored one")
            }
            return .notModified
        }

        func evaluateUnsatisfiable(stored: StoredVersion?) throws(BodyClaim.Contradiction) -> Decision {
            let length = try BodyClaim.contentRange(fields)?.length
            if let length, let stored {
                if let known = stored.version.length, known != length {
                    return .restart("the length changed from \(known) to \(length)")
                }
                if length < stored.storedEnd {
                    return .restart("the length is \(length), but bytes up to \(stored.storedEnd) are stored")
                }
            }
            if let askedFrom, askedFrom < askedEnd ?? .max {
                if let length, askedFrom < length {
                    throw BodyClaim.Contradiction(reason: "no bytes from \(askedFrom) on in a length of \(length)")
                }
                if length == nil, let stored, askedFrom < max(stored.version.length ?? 0, stored.storedEnd) {
                    return .restart("the origin no longer has bytes from \(askedFrom) on")
                }
            }
            return .unsatisfiable(length: length ?? stored?.version.length)
        }
    }
}

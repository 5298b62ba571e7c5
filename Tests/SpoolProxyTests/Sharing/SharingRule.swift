/// A response that the origin has sent, with the facts that determine whether it may be reused.
struct SharingRecord: Sendable {
    /// The number of the response, which its body and its fields contain.
    let serial: Int
    let page: Int
    /// The number of the client request that caused the response.
    let call: Int
    let method: String
    let requestFields: [String: String]
    let status: Int
    let directives: SharingDirectives
    let vary: [String]
    /// The time of the response, in seconds.
    let time: Int
    /// The number of the response whose bytes a 304 confirms; for other responses, the same as ``serial``.
    let representation: Int
    let hasTag: Bool
}

/// The rules for a shared cache (RFC 9111), implemented independently of the tested code.
struct SharingRule {
    /// All requests of the run.
    let requests: [SharingRequest]
    /// All responses from the origin so far.
    let records: [SharingRecord]
    /// The numbers of the requests whose responses were received before the checked request was sent.
    let completed: Set<Int>
    /// The numbers of the responses whose fields clients had received before the checked request was sent.
    let received: Set<Int>

    /// Returns the reason why a response must not be sent for a request; `nil` if it may be sent.
    ///
    /// - Parameter sent: The time at which the request was sent, in seconds.
    func violation(_ record: SharingRecord, for request: SharingRequest, sent: Int) -> String? {
        if record.call == request.number { return nil }
        if let reason = unshareable(record, for: request) { return reason }
        let own = records.filter { $0.call == request.number }
        // A 304 to another request may confirm this request's own response and replace its fields (§4.3.4).
        if own.contains(where: { $0.serial == record.representation }) { return nil }
        if own.contains(where: { $0.status == 304 && $0.representation == record.representation }) {
            return nil
        }
        // Each 304 that confirms the bytes replaces the directives (§4.3.4), unless it must not be stored. A 304 that
        // must not be stored confirms the bytes only for requests that were waiting at the same time.
        let confirmations = records.filter { $0.representation == record.representation }
        if confirmations.contains(where: { isUnstored($0) && !completed.contains($0.call) }) { return nil }
        let all = confirmations.filter { !isUnstored($0) }
        // The cache must use the newest directives that a client has received. A revalidation in the background belongs
        // to an earlier call. The completion of that call does not mean that the cache has received the 304.
        // The origin does not determine in which order the cache receives confirmations that were sent at the same time.
        let last = all.last { received.contains($0.serial) }?.time ?? 0
        let current = all.filter { $0.time >= last && unshareable($0, for: request) == nil }
        let failed = own.contains { $0.status >= 500 }
        for record in current {
            // A response in flight must have been fresh at the time of the request or of the response, whichever is
            // earlier.
            let time = completed.contains(record.call) ? sent : min(sent, record.time)
            if isUsable(record, for: request, at: time, failed: failed) { return nil }
        }
        let described = confirmations.map { "\($0.serial)\(received.contains($0.serial) ? " (received)" : "") \($0)" }
        return "the response is not fresh, and the origin did not confirm it: \(own.map(\.status)), of \(described)"
    }

    private func isUnstored(_ record: SharingRecord) -> Bool {
        record.status == 304 && requests.indices.contains(record.call) && requests[record.call].control == "no-store"
    }

    /// Returns the reason why other requests may never use a response (§3, §3.5, §4.1); `nil` if they may.
    private func unshareable(_ record: SharingRecord, for request: SharingRequest) -> String? {
        let directives = record.directives
        if request.method == "POST" { return "it is the response to another POST" }
        if record.method == "POST" { return "it is the response to a POST" }
        if directives.flags.contains("no-store") { return "no-store" }
        if directives.flags.contains("private") { return "private" }
        if requests.indices.contains(record.call), requests[record.call].control == "no-store" {
            return "its request had no-store"
        }
        if record.status >= 500 { return "it is an error" }
        if record.requestFields["authorization"] != nil, directives.sharedMaxAge == nil,
            directives.flags.isDisjoint(with: ["public", "must-revalidate"])
        {
            return "its request had Authorization"
        }
        for name in record.vary {
            if name == "*" { return "Vary: *" }
            if record.requestFields[name] != request.fields[name] { return "Vary: \(name)" }
        }
        return nil
    }

    /// Returns whether a response may be used without a request to the origin (§4.2, §5.2.1; RFC 5861 §3).
    private func isUsable(
        _ record: SharingRecord, for request: SharingRequest, at now: Int, failed: Bool
    ) -> Bool {
        let directives = record.directives
        if directives.flags.contains("no-cache") { return false }
        let lifetime =
            directives.sharedMaxAge ?? directives.maxAge ?? (directives.modifiedAge ?? 0) / 10
        let age = max(0, now - record.time)
        let mustRevalidate =
            directives.sharedMaxAge != nil
            || !directives.flags.isDisjoint(with: ["must-revalidate", "proxy-revalidate"])
        // Only directives of the response prohibit its use after an error (§4.2.4). The directives of a request are
        // only preferences.
        if failed { return age < lifetime || !mustRevalidate }
        if request.control == "no-cache" || request.control == "max-age=0" { return false }
        if request.control == "max-age=3", age > 3 { return false }
        if age < lifetime { return true }
        if mustRevalidate { return false }
        let allowed = max(
            directives.staleWhileRevalidate ?? 0, request.control == "max-stale=10" ? 11 : 0)
        return age < lifetime + allowed
    }

    /// Returns the reason why a response's cookie must not be sent for a request; `nil` if it may be sent.
    func violation(cookieOf record: SharingRecord, for request: SharingRequest, sent: Int) -> String? {
        if record.call == request.number { return nil }
        if record.directives.naming != nil { return "the origin names Set-Cookie as private" }
        let directives = record.directives
        if directives.flags.contains("no-cache")
            || directives.sharedMaxAge ?? directives.maxAge ?? 0 == 0
        {
            return "the origin permits no reuse of its response"
        }
        return violation(record, for: request, sent: sent)
    }
}

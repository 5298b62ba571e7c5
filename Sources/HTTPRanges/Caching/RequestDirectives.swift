package import HTTPTypes

/// How fresh a client wants what it is sent (RFC 9111 §5.2.1).
package struct RequestDirectives: Sendable, Hashable {
    /// The oldest that it takes, in seconds.
    package var maxAge: Int64?
    /// For how many seconds it must stay fresh.
    package var minFresh: Int64?
    /// For how many seconds it may have been stale; `Int64.max` for any time.
    package var maxStale: Int64?
    /// Not without asking the origin.
    package var noCache = false
    /// What is sent for it is not to be kept.
    package var noStore = false
    /// Not by asking the origin.
    package var onlyIfCached = false

    /// One that asks for nothing.
    package init() {}

    /// Reads a request's fields; `Pragma: no-cache` counts where there is no `Cache-Control` (§5.4).
    ///
    /// A number that is malformed counts as 0, or for `max-stale` as not said.
    package init(fields: HTTPFields) {
        let elements = fields[values: .cacheControl].flatMap { FieldText.elements($0) }
        for element in elements {
            let parts = element.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let value = parts.count > 1 ? FieldText.unquoted(parts[1]) : nil
            let seconds = value.flatMap { FieldText.seconds($0.utf8) }
            switch FieldText.lowercased(parts[0]) {
            case "max-age": maxAge = min(seconds ?? 0, maxAge ?? .max)
            case "min-fresh": minFresh = max(seconds ?? 0, minFresh ?? 0)
            case "max-stale": maxStale = min(value == nil ? .max : seconds ?? 0, maxStale ?? .max)
            case "no-cache": noCache = true
            case "no-store": noStore = true
            case "only-if-cached": onlyIfCached = true
            default: break
            }
        }
        if !fields.contains(.cacheControl), let pragma = HTTPField.Name("Pragma") {
            noCache = fields[values: pragma].flatMap { FieldText.elements($0) }.contains {
                FieldText.lowercased($0) == "no-cache"
            }
        }
    }

    /// Whether a response of this age, that is fresh for `lifetime` seconds, may be sent without asking.
    ///
    /// - Parameter mayBeStale: whether the response's own directives let it be used stale; if not, `maxStale` does not count.
    package func accepts(age: Int64, lifetime: Int64, mayBeStale: Bool) -> Bool {
        if noCache { return false }
        if let maxAge, age > maxAge || maxAge == 0 { return false }
        let (left, overflow) = lifetime.subtractingReportingOverflow(age)
        let fresh = overflow ? Int64.min : left
        if fresh > 0 { return fresh >= minFresh ?? 0 }
        guard let maxStale, minFresh == nil, mayBeStale else { return false }
        return fresh == .min ? maxStale == .max : -fresh <= maxStale
    }
}

package import HTTPTypes

/// The evaluation of a request's conditions against a stored response (RFC 9110 §13.2.2, RFC 9111 §4.3.2).
package enum Preconditions {
    /// The result of evaluating the conditions.
    package enum Outcome: Sendable, Hashable {
        /// The response is sent as if the request had no conditions.
        case proceed
        /// Status 304 is sent.
        case notModified
        /// Status 412 is sent.
        case failed
    }

    /// Evaluates a request's conditions against a stored response, in their order of precedence.
    ///
    /// Entity tags are parsed leniently: missing quotes and misspelled `W/` prefixes are accepted. A condition with an
    /// invalid date is ignored.
    ///
    /// - Parameters:
    ///   - request: The fields of the request.
    ///   - method: The method of the request.
    ///   - stored: The fields of the stored response.
    package static func evaluate(_ request: HTTPFields, method: HTTPRequest.Method, stored: HTTPFields) -> Outcome {
        let tag = stored[.eTag].map { Tag($0[...]) }
        let modified = stored[.lastModified].flatMap { HTTPDate(parsing: $0) }
        let isSafe = method == .get || method == .head
        if request.contains(.ifMatch) {
            let holds = tags(request[values: .ifMatch], match: tag) { $0.value == $1.value && !$0.isWeak && !$1.isWeak }
            if !holds { return .failed }
        } else if let date = date(request, .ifUnmodifiedSince), let modified, modified > date {
            return .failed
        }
        if request.contains(.ifNoneMatch) {
            let matches = tags(request[values: .ifNoneMatch], match: tag) { $0.value == $1.value }
            guard matches else { return .proceed }
            return isSafe ? .notModified : .failed
        }
        // If there is no Last-Modified, the date of the response is used (RFC 9111 §4.3.2).
        if isSafe, let date = date(request, .ifModifiedSince),
            let made = modified ?? stored[.date].flatMap({ HTTPDate(parsing: $0) }), made <= date
        {
            return .notModified
        }
        return .proceed
    }

    /// Returns whether `If-Range` allows a response with the requested range. Otherwise, the whole resource is sent
    /// (RFC 9110 §13.1.5).
    package static func ifRangeHolds(_ request: HTTPFields, validator: Validator) -> Bool {
        let values = request[values: .ifRange]
        guard let first = values.first else { return true }
        return values.count == 1 && validator.satisfies(ifRange: first)
    }

    /// A leniently parsed entity tag.
    private struct Tag {
        var value: Substring
        var isWeak = false

        init(_ text: Substring) {
            value = FieldText.trimmed(text)
            for mark in ["W/\"", "w/\"", "W\\\"", "W\""] where value.utf8.starts(with: mark.utf8) {
                isWeak = true
                value = Substring(value.utf8.dropFirst(mark.utf8.count - 1))
                break
            }
            value = FieldText.unquoted(value)
        }
    }

    private static func tags(_ lines: [String], match stored: Tag?, by rule: (Tag, Tag) -> Bool) -> Bool {
        lines.flatMap { FieldText.elements($0) }.contains { element in
            if element == "*" { return true }
            return stored.map { rule(Tag(element), $0) } ?? false
        }
    }

    private static func date(_ fields: HTTPFields, _ name: HTTPField.Name) -> HTTPDate? {
        let values = fields[values: name]
        return values.count == 1 ? HTTPDate(parsing: values[0]) : nil
    }
}

/// The freshness that a client requires of a response (RFC 9111 §5.2.1).
package struct RequestDirectives: Sendable, Hashable {
    /// The maximum age, in seconds.
    package var maxAge: Int64?
    /// The minimum number of seconds for which the response must stay fresh.
    package var minFresh: Int64?
    /// The maximum number of seconds for which the response may have been stale; `Int64.max` for no limit.
    package var maxStale: Int64?
    /// Whether the response must be validated with the origin.
    package var noCache = false
    /// Whether the response must not be stored.
    package var noStore = false
    /// Whether no request may be sent to the origin.
    package var onlyIfCached = false

    /// Creates directives without requirements.
    package init() {}

    /// Parses the fields of a request. `Pragma: no-cache` counts if there is no `Cache-Control` (§5.4).
    ///
    /// A malformed number counts as 0.
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

    /// Returns whether a response of this age, which is fresh for `lifetime` seconds, may be sent without validation.
    ///
    /// - Parameter mayBeStale: Whether the response's own directives allow stale use. Otherwise, `maxStale` is ignored.
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

package import HTTPTypes

/// Decides what a conditional request gets where a response is stored (RFC 9110 §13.2.2, RFC 9111 §4.3.2).
package enum Preconditions {
    /// What it gets.
    package enum Outcome: Sendable, Hashable {
        /// What it would get without conditions.
        case proceed
        /// 304.
        case notModified
        /// 412.
        case failed
    }

    /// Evaluates a request's conditions against a stored response, in their order of precedence.
    ///
    /// Entity tags are taken as lenient text: one without quotes, or with another mark of weakness, is what it would be with
    /// them. A date that can't be read is no condition.
    ///
    /// - Parameters:
    ///   - request: the request's fields.
    ///   - method: its method.
    ///   - stored: the stored response's fields.
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
        // Without Last-Modified, when it was made (RFC 9111 §4.3.2).
        if isSafe, let date = date(request, .ifModifiedSince),
            let made = modified ?? stored[.date].flatMap({ HTTPDate(parsing: $0) }), made <= date
        {
            return .notModified
        }
        return .proceed
    }

    /// Whether a range is to be sent, as far as `If-Range` says; if not, the whole (RFC 9110 §13.1.5).
    package static func ifRangeHolds(_ request: HTTPFields, validator: Validator) -> Bool {
        let values = request[values: .ifRange]
        guard let first = values.first else { return true }
        return values.count == 1 && validator.satisfies(ifRange: first)
    }

    /// An entity tag as it may be written.
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

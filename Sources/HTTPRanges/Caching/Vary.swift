package import HTTPTypes

/// Which request headers a response depends on, so that one player's variant is never given to another (`Vary`,
/// RFC 9110 §12.5.5, RFC 9111 §4.1).
package struct Vary: Sendable, Hashable {
    /// One nominated field of a request.
    package struct Selected: Sendable, Hashable, Codable {
        /// The field's name in lower case.
        package var name: String
        /// Its value, lines joined by `, ` and blanks at the ends of elements removed; nil if the request lacks it.
        package var value: String?

        /// A nominated field.
        package init(name: String, value: String?) {
            self.name = name
            self.value = value
        }
    }

    /// Whether it says `*`, or something that names no field: no stored response ever fits another request.
    package var isAny: Bool
    /// The nominated names in lower case, ascending, each once.
    package var names: [String]

    /// Reads a response's fields; no `Vary` nominates nothing.
    package init(fields: HTTPFields) {
        let elements = fields[values: .vary].flatMap { FieldText.elements($0) }
        let parsed = elements.map { $0 == "*" ? nil : HTTPField.Name(String($0))?.canonicalName }
        isAny = parsed.contains(nil)
        names = Set(parsed.compactMap { $0 }).sorted()
    }

    /// The values of the nominated fields in a request: equal for two requests that may share a response, and fit to be
    /// hashed into a key. Values may hold secrets (`Authorization`, `Cookie`): store the hash, not them.
    ///
    /// Nil if ``isAny``.
    package func selection(from request: HTTPFields) -> [Selected]? {
        guard !isAny else { return nil }
        return names.map { name in
            let values = HTTPField.Name(name).map { request[values: $0] } ?? []
            var elements = values.flatMap { FieldText.elements($0) }.map { String($0) }
            if name == "accept-language" { elements = elements.map(Self.languageRange).sorted() }
            let value = elements.joined(separator: ", ")
            return Selected(name: name, value: values.isEmpty ? nil : value)
        }
    }

    /// A language and its weight in one form: in lower case, without blanks. Their order says nothing (RFC 9110 §12.5.4).
    private static func languageRange(_ text: String) -> String {
        String(decoding: text.utf8.filter { $0 != 0x20 && $0 != 0x09 }.map(FieldText.lowercased), as: UTF8.self)
    }
}

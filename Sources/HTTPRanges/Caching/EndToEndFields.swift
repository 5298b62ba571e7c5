package import HTTPTypes

/// Functions that separate the end-to-end fields of a message from the fields for a single connection.
package enum EndToEndFields {
    /// Returns `fields` without those that a proxy must not forward: hop-by-hop fields, and those listed in
    /// `Connection` (RFC 9110 §7.6.1).
    package static func of(_ fields: HTTPFields) -> HTTPFields {
        let named = Set(fields[values: .connection].flatMap { FieldText.elements($0) }.map(FieldText.lowercased))
        return fields.without { named.contains($0.canonicalName) || isHopByHop($0.canonicalName) }
    }

    /// Returns the fields of a response that may be stored with its bytes.
    ///
    /// Message framing, `Age`, secrets of one user, and URLs, whose paths and queries may be secret, are removed.
    /// Fields listed in `private` or `no-cache` are also removed, even if other directives permit them.
    ///
    /// - Parameter isOfSite: Whether the cache belongs to a reverse proxy for a site. If so, URLs are always stored,
    ///   because the site publishes them. Cookies are stored if a shared cache may use the response for some time
    ///   without a request to the origin.
    package static func storable(_ fields: HTTPFields, isOfSite: Bool = false) -> HTTPFields {
        let control = CacheControl.governing(fields).control
        let storesCookies = isOfSite && allowsCookies(control)
        return of(fields).without { name in
            if control.namedFields.contains(name.canonicalName) { return true }
            if isCookie(name), storesCookies { return false }
            if isOfSite, name == .contentRange { return false }
            if !isOfSite, addresses.contains(name.canonicalName) { return true }
            return unstorable.contains(name.canonicalName)
        }
    }

    private static func allowsCookies(_ control: CacheControl) -> Bool {
        let lifetime = control.noCache || control.isPrivate ? 0 : control.sharedMaxAge ?? control.maxAge ?? 0
        return lifetime > 0
    }

    /// Returns whether a field sets a cookie, which means that the response is for one user only.
    package static func hasCookies(_ fields: HTTPFields) -> Bool { fields.contains { isCookie($0.name) } }

    /// Returns the fields that set cookies.
    package static func cookies(of fields: HTTPFields) -> HTTPFields { fields.without { !isCookie($0) } }

    private static func isCookie(_ name: HTTPField.Name) -> Bool {
        name.canonicalName == "set-cookie" || name.canonicalName == "set-cookie2"
    }

    /// Returns `stored`, updated with the fields of `newer` (RFC 9111 §3.2).
    ///
    /// Fields that describe the stored bytes do not change. In `Content-Type`, only the parameters are replaced. The
    /// result contains only fields that may be stored; see ``storable(_:isOfSite:)``.
    package static func updating(_ stored: HTTPFields, by newer: HTTPFields) -> HTTPFields {
        let isOfSameType = essence(of: newer) == essence(of: stored)
        let newer = newer.without { name in
            ofStoredBytes.contains(name.canonicalName) || name == .contentType && !isOfSameType
        }
        let names = Set(newer.map(\.name))
        let updated = stored.without { names.contains($0) } + newer
        // The newer response may prohibit fields that only the stored one contains.
        let control = CacheControl.governing(updated).control
        let storesCookies = allowsCookies(control)
        return updated.without { name in
            control.namedFields.contains(name.canonicalName) || isCookie(name) && !storesCookies
        }
    }

    /// Returns `fields` without digests of the message, for a message with different bytes of the same representation,
    /// such as a part.
    package static func withoutMessageDigests(_ fields: HTTPFields) -> HTTPFields {
        fields.without { messageDigests.contains($0.canonicalName) }
    }

    /// Returns the digests of the message.
    package static func messageDigests(of fields: HTTPFields) -> HTTPFields {
        fields.without { !messageDigests.contains($0.canonicalName) }
    }

    /// Returns `fields` without digests, for a response whose bytes were changed.
    package static func withoutDigests(_ fields: HTTPFields) -> HTTPFields {
        fields.without { messageDigests.contains($0.canonicalName) || representationDigests.contains($0.canonicalName) }
    }

    /// Returns `fields`, reduced so that all names and values together use at most `limit` bytes. Fields that no cache
    /// or player needs are removed before the others, and larger ones before smaller ones.
    ///
    /// Fields that protect the origin's pages are never removed, even if they exceed the limit. See
    /// ``protectiveBytes(of:)``.
    package static func bounded(_ fields: HTTPFields, to limit: Int) -> HTTPFields {
        var excess = fields.reduce(-limit) { $0 + size($1) }
        guard excess > 0 else { return fields }
        let order = fields.enumerated().filter { !isProtective($0.element.name) }.sorted { one, other in
            let (isNeeded, isOtherNeeded) = (isNeeded(one.element.name), isNeeded(other.element.name))
            if isNeeded != isOtherNeeded { return !isNeeded }
            return (size(one.element), one.offset) > (size(other.element), other.offset)
        }
        var dropped: Set<Int> = []
        for (index, field) in order where excess > 0 {
            excess -= size(field)
            dropped.insert(index)
        }
        return HTTPFields(fields.enumerated().filter { !dropped.contains($0.offset) }.map(\.element))
    }

    /// Returns the size of the fields that protect the origin's pages, in bytes. Without these fields, a response would
    /// be less safe than the origin intends.
    package static func protectiveBytes(of fields: HTTPFields) -> Int {
        fields.reduce(0) { $0 + (isProtective($1.name) ? size($1) : 0) }
    }

    private static func size(_ field: HTTPField) -> Int { field.name.rawName.utf8.count + field.value.utf8.count + 4 }

    private static func isProtective(_ name: HTTPField.Name) -> Bool { protective.contains(name.canonicalName) }

    /// Returns the media type without its parameters (RFC 9110 §8.3.1).
    private static func essence(of fields: HTTPFields) -> String? {
        fields[.contentType].map { FieldText.lowercased($0.prefix { $0 != ";" && $0 != " " }) }
    }

    private static func isHopByHop(_ name: String) -> Bool { hopByHop.contains(name) || name.hasPrefix("proxy-") }

    private static func isNeeded(_ name: HTTPField.Name) -> Bool {
        needed.contains(name.canonicalName) || name.canonicalName.hasPrefix("access-control-")
    }

    private static let hopByHop: Set<String> = [
        "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "http2-settings",
    ]
    private static let ofStoredBytes: Set<String> = [
        "age", "content-length", "content-encoding", "content-range",
    ]
    private static let unstorable: Set<String> = [
        "age", "content-length", "content-range", "set-cookie", "set-cookie2", "authorization", "cookie",
        "www-authenticate", "authentication-info", "authentication-control",
    ]
    /// Digests of the bytes of one message, which may contain only a part of the resource (RFC 9530 §2, RFC 1864).
    private static let messageDigests: Set<String> = ["content-digest", "content-md5"]
    /// Digests of a whole representation (RFC 9530 §3, RFC 3230), including those in the fields of cloud storage
    /// services.
    private static let representationDigests: Set<String> = [
        "repr-digest", "digest", "unencoded-digest", "x-goog-hash", "x-amz-checksum-crc32", "x-amz-checksum-crc32c",
        "x-amz-checksum-crc64nvme", "x-amz-checksum-sha1", "x-amz-checksum-sha256", "x-ms-blob-content-md5",
    ]
    /// Fields whose values are URLs, which may be signed.
    private static let addresses: Set<String> = [
        "content-location", "link", "location", "refresh", "sourcemap", "x-sourcemap",
    ]
    /// Fields that restrict what pages may do, how they may be used, or which caches may store them.
    private static let protective: Set<String> = [
        "cache-control", "cdn-cache-control", "clear-site-data", "content-disposition", "content-security-policy",
        "content-security-policy-report-only", "cross-origin-embedder-policy",
        "cross-origin-embedder-policy-report-only", "cross-origin-opener-policy",
        "cross-origin-opener-policy-report-only", "cross-origin-resource-policy", "document-policy", "feature-policy",
        "integrity-policy", "origin-agent-cluster", "permissions-policy", "referrer-policy", "require-document-policy",
        "strict-transport-security", "x-content-type-options", "x-frame-options", "x-permitted-cross-domain-policies",
        "x-xss-protection",
    ]
    private static let needed: Set<String> = [
        "cache-control", "cdn-cache-control", "content-disposition", "content-encoding", "content-language",
        "content-location", "content-type", "date", "etag", "expires", "last-modified", "link", "location", "vary",
    ]
}

extension HTTPFields {
    fileprivate func without(_ isDropped: (HTTPField.Name) -> Bool) -> HTTPFields {
        HTTPFields(filter { !isDropped($0.name) })
    }

    fileprivate static func + (one: HTTPFields, other: HTTPFields) -> HTTPFields {
        var sum = one
        for field in other { sum.append(field) }
        return sum
    }
}

/// The request fields that select a response, so that a client never receives the wrong variant (`Vary`, RFC 9110
/// §12.5.5, RFC 9111 §4.1).
package struct Vary: Sendable, Hashable {
    /// A request field that `Vary` nominates.
    package struct Selected: Sendable, Hashable, Codable {
        /// The name of the field in lower case.
        package var name: String
        /// The value, with lines joined by `, ` and without spaces around elements; `nil` if the request lacks the
        /// field.
        package var value: String?

        /// Creates a nominated field.
        package init(name: String, value: String?) {
            self.name = name
            self.value = value
        }
    }

    /// Whether `Vary` contains `*` or an invalid name. If so, a stored response does not match any other request.
    package var isAny: Bool
    /// The nominated names, in lower case, in ascending order and without duplicates.
    package var names: [String]

    /// Parses the fields of a response. If there is no `Vary`, no field is nominated.
    ///
    /// `Origin` is also nominated if only the web pages of one origin may read the response (Fetch standard, “CORS
    /// protocol and HTTP caches”). Some servers omit `Origin` from `Vary`.
    ///
    /// - Parameter request: The fields of the request, or `nil` if they are not known. If the response names a fixed
    ///   origin that is not the origin of the request, `Origin` is not nominated.
    package init(fields: HTTPFields, request: HTTPFields? = nil) {
        let elements = fields[values: .vary].flatMap { FieldText.elements($0) }
        var parsed = elements.map { $0 == "*" ? nil : HTTPField.Name(String($0))?.canonicalName }
        if let readers = fields[.accessControlAllowOrigin], readers != "*",
            request.map({ $0[.origin] == readers }) ?? true
        {
            parsed.append("origin")
        }
        isAny = parsed.contains(nil)
        names = Set(parsed.compactMap { $0 }).sorted()
    }

    /// Returns the values of the nominated fields in a request; `nil` if ``isAny``.
    ///
    /// The values are equal for two requests that may share a response, and can be hashed into a key. Values may
    /// contain secrets (`Authorization`, `Cookie`), so store only the hash.
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

    /// Returns a language and its weight in normalized form: in lower case and without spaces. The order of languages
    /// has no meaning (RFC 9110 §12.5.4).
    private static func languageRange(_ text: String) -> String {
        String(decoding: text.utf8.filter { $0 != 0x20 && $0 != 0x09 }.map(FieldText.lowercased), as: UTF8.self)
    }
}

package import HTTPTypes

/// Tells the fields of a message that are meant for its far end from those of one connection on the way.
package enum EndToEndFields {
    /// `fields` without those that a proxy must not pass on: the connection's own, and those that `Connection` names
    /// (RFC 9110 §7.6.1).
    package static func of(_ fields: HTTPFields) -> HTTPFields {
        let named = Set(fields[values: .connection].flatMap { FieldText.elements($0) }.map(FieldText.lowercased))
        return fields.without { named.contains($0.canonicalName) || isHopByHop($0.canonicalName) }
    }

    /// Those of a response that may be kept with its bytes: without its framing, which is each message's own, without `Age`,
    /// which goes on counting, and without what is one user's secret, or is named by `private` or `no-cache`.
    ///
    /// A field that `private` or `no-cache` names is removed, even if other directives permit it.
    ///
    /// - Parameter isOfSite: Whether the cache stores responses for the site that it serves, as the origin sends them.
    ///   Cookies are then stored if a shared cache may use the response for some time without asking the origin.
    package static func storable(_ fields: HTTPFields, isOfSite: Bool = false) -> HTTPFields {
        let control = CacheControl.governing(fields).control
        let storesCookies = isOfSite && allowsCookies(control)
        return of(fields).without { name in
            if control.namedFields.contains(name.canonicalName) { return true }
            if isCookie(name), storesCookies { return false }
            if isOfSite, name == .contentRange { return false }
            return unstorable.contains(name.canonicalName)
        }
    }

    private static func allowsCookies(_ control: CacheControl) -> Bool {
        let lifetime = control.noCache || control.isPrivate ? 0 : control.sharedMaxAge ?? control.maxAge ?? 0
        return lifetime > 0
    }

    /// Whether there is something among them that one user is sent for himself.
    package static func hasCookies(_ fields: HTTPFields) -> Bool { fields.contains { isCookie($0.name) } }

    private static func isCookie(_ name: HTTPField.Name) -> Bool {
        name.canonicalName == "set-cookie" || name.canonicalName == "set-cookie2"
    }

    /// `stored`, each field replaced that `newer` has, too, but for those that say how the stored bytes are to be read: of a
    /// media type only the parameters; both as ``storable(_:isOfSite:)`` leaves them (RFC 9111 §3.2).
    package static func updating(_ stored: HTTPFields, by newer: HTTPFields) -> HTTPFields {
        let isOfSameType = essence(of: newer) == essence(of: stored)
        let newer = newer.without { name in
            ofStoredBytes.contains(name.canonicalName) || name == .contentType && !isOfSameType
        }
        let names = Set(newer.map(\.name))
        let updated = stored.without { names.contains($0) } + newer
        // The newer response may prohibit fields that only the stored one has.
        let control = CacheControl.governing(updated).control
        let storesCookies = allowsCookies(control)
        return updated.without { name in
            control.namedFields.contains(name.canonicalName) || isCookie(name) && !storesCookies
        }
    }

    /// `fields` with names and values of at most `limit` bytes together: of those that no cache or player needs, the largest
    /// go first.
    package static func bounded(_ fields: HTTPFields, to limit: Int) -> HTTPFields {
        func size(_ field: HTTPField) -> Int { field.name.rawName.utf8.count + field.value.utf8.count + 4 }
        var excess = fields.reduce(-limit) { $0 + size($1) }
        guard excess > 0 else { return fields }
        let order = fields.enumerated().sorted { one, other in
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

    /// The media type without its parameters (RFC 9110 §8.3.1).
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

/// The nodes from which proxies received a request, as listed in `Forwarded` (RFC 7239 §4) or `X-Forwarded-For`.
///
/// Each proxy appends the node from which it received the request. A node is an IP address, `unknown`, or an identifier
/// that starts with an underscore (RFC 7239 §6). Ports are removed. A malformed node becomes an empty string, because a
/// client may have sent it, and the nodes after it are still valid.
package enum ForwardedNodes {
    /// Parses the values of all `Forwarded` lines, in order.
    ///
    /// - Returns: The nodes, with `unknown` for an element without `for`; `nil` if a value is not a list of parameters.
    ///   For example, an unterminated quoted string could hide an element that the next proxy appended.
    package static func inForwarded(_ values: [String]) -> [String]? {
        var nodes: [String] = []
        for element in values.flatMap({ FieldText.elements($0) }) {
            guard let node = node(ofElement: element) else { return nil }
            nodes.append(node)
        }
        return nodes
    }

    /// Returns the nodes in the values of all `X-Forwarded-For` lines, in order.
    package static func inXForwardedFor(_ values: [String]) -> [String] {
        values.flatMap { $0.split(separator: ",") }.map { FieldText.trimmed($0) }.filter { !$0.isEmpty }.map(node)
    }

    /// The maximum length of a node. No address is longer.
    private static let limit = 64

    private static func node(ofElement element: Substring) -> String? {
        var node: String?
        var rest = Array(element.utf8)[...]
        while !rest.isEmpty {
            guard let (name, value) = pair(&rest) else { return nil }
            guard FieldText.equalIgnoringCase(name, "for".utf8) else { continue }
            // A parameter occurs at most once (RFC 7239 §4).
            guard node == nil else { return nil }
            node = self.node(Substring(decoding: value, as: UTF8.self))
        }
        return node ?? "unknown"
    }

    /// Removes `name=value` and the semicolon after it from the start of `rest`, and returns the name and the value.
    /// The value is a token or a quoted string. The pair may be empty.
    private static func pair(_ rest: inout ArraySlice<UInt8>) -> (name: ArraySlice<UInt8>, value: [UInt8])? {
        func skipBlanks() { rest = rest.drop { $0 == 0x20 || $0 == 0x09 } }
        func isEnd(_ byte: UInt8) -> Bool { byte == UInt8(ascii: ";") || byte == 0x20 || byte == 0x09 }
        skipBlanks()
        let name = rest.prefix { !isEnd($0) && $0 != UInt8(ascii: "=") && $0 != UInt8(ascii: "\"") }
        rest = rest.dropFirst(name.count)
        var value: [UInt8] = []
        if !name.isEmpty {
            guard rest.popFirst() == UInt8(ascii: "=") else { return nil }
            if rest.first == UInt8(ascii: "\"") {
                guard let text = quoted(&rest) else { return nil }
                value = text
            } else {
                value = Array(rest.prefix { !isEnd($0) && $0 != UInt8(ascii: "\"") })
                rest = rest.dropFirst(value.count)
            }
        }
        skipBlanks()
        guard rest.isEmpty || rest.popFirst() == UInt8(ascii: ";") else { return nil }
        return (name, value)
    }

    /// Removes a quoted string from the start of `rest`, and returns its text; `nil` if the string is not terminated.
    private static func quoted(_ rest: inout ArraySlice<UInt8>) -> [UInt8]? {
        var text: [UInt8] = []
        rest.removeFirst()
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "\""): return text
            case UInt8(ascii: "\\"):
                guard let escaped = rest.popFirst() else { return nil }
                text.append(escaped)
            default: text.append(byte)
            }
        }
        return nil
    }

    /// Returns a node without its port and without the brackets of an IPv6 address; an empty string if it is malformed.
    private static func node(_ text: Substring) -> String {
        var name = text
        var port: Substring?
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { return "" }
            name = text[..<end].dropFirst()
            let rest = text[end...].dropFirst()
            guard rest.isEmpty || rest.hasPrefix(":") else { return "" }
            port = rest.isEmpty ? nil : rest.dropFirst()
        } else if let colon = text.firstIndex(of: ":"), !text[colon...].dropFirst().contains(":") {
            // An address with several colons is IPv6 without brackets, which many proxies send.
            name = text[..<colon]
            port = text[colon...].dropFirst()
        }
        guard isIdentifier(name), port.map(isIdentifier) ?? true else { return "" }
        return String(name)
    }

    /// Returns whether the text contains only characters that occur in addresses, ports and identifiers (RFC 7239 §6).
    /// The zone of an IPv6 address starts with `%`.
    private static func isIdentifier(_ text: Substring) -> Bool {
        !text.isEmpty && text.utf8.count <= limit
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: ":"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
                case UInt8(ascii: "a")...UInt8(ascii: "z"): true
                default: "._-%".utf8.contains(byte)
                }
            }
    }
}

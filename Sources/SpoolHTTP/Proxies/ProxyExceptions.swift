/// Says which hosts are asked without a proxy, as curl reads `no_proxy`.
///
/// Pure. A list by commas or blanks of names, which also stand for all names below them, and of addresses, which may be
/// blocks (`10.0.0.0/8`, `fe80::/10`); a `*` alone is every host.
struct ProxyExceptions {
    private let isAll: Bool
    private let entries: [Substring]

    init(_ text: String) {
        isAll = text == "*"
        entries = text.split { ", \t\n".contains($0) }
    }

    func contain(_ host: String) -> Bool {
        if isAll { return true }
        let name = host.hasPrefix("[") && host.hasSuffix("]") ? host.dropFirst().dropLast() : host[...]
        if let address = IPAddress(name) { return entries.contains { matches(address, $0) } }
        let trimmed = Self.trimmed(name)
        return entries.contains { matches(trimmed, $0) }
    }

    private func matches(_ name: String, _ entry: Substring) -> Bool {
        var entry = Self.trimmed(entry)
        if entry.hasPrefix(".") { entry.removeFirst() }
        return !entry.isEmpty && (name == entry || name.hasSuffix("." + entry))
    }

    private func matches(_ address: IPAddress, _ entry: Substring) -> Bool {
        let parts = entry.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        let text = parts[0].hasPrefix("[") && parts[0].hasSuffix("]") ? parts[0].dropFirst().dropLast() : parts[0]
        guard let block = IPAddress(text), block.bytes.count == address.bytes.count else { return false }
        let length = address.bytes.count * 8
        guard parts.count == 2 else { return block.bytes == address.bytes }
        guard let bits = Int(parts[1]), (0...length).contains(bits) else { return false }
        let whole = bits / 8
        guard block.bytes[..<whole] == address.bytes[..<whole] else { return false }
        let rest = bits % 8
        return rest == 0 || block.bytes[whole] >> (8 - rest) == address.bytes[whole] >> (8 - rest)
    }

    /// In lower case, without the dot of a fully qualified name.
    private static func trimmed(_ name: Substring) -> String {
        let name = name.lowercased()
        return name.hasSuffix(".") ? String(name.dropLast()) : name
    }
}

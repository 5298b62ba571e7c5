import ArgumentParser

/// A host and the most that is kept of it, as `media.example.org=2GB` or `[::1]=2GB`.
struct QuotaArgument: Sendable, ExpressibleByArgument {
    var host: String
    var size: ByteCount

    /// Reads both; nil where one is missing or none.
    init?(argument: String) {
        let parts = argument.split(separator: "=", omittingEmptySubsequences: false)
        guard parts.count == 2, let size = ByteCount(argument: String(parts[1])) else { return nil }
        let isAddress = parts[0].hasPrefix("[") && parts[0].hasSuffix("]")
        let host = isAddress ? parts[0].dropFirst().dropLast() : parts[0]
        guard !host.isEmpty, !host.contains(where: { isAddress ? "/@ []".contains($0) : "/:@ []".contains($0) }) else {
            return nil
        }
        (self.host, self.size) = (String(host), size)
    }
}

import ArgumentParser

/// A host and the most that is kept of it, as `media.example.org=2GB`.
struct QuotaArgument: Sendable, ExpressibleByArgument {
    var host: String
    var size: ByteCount

    /// Reads both; nil where one is missing or none.
    init?(argument: String) {
        let parts = argument.split(separator: "=", omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, !parts[0].contains(where: { "/:@ ".contains($0) }),
            let size = ByteCount(argument: String(parts[1]))
        else { return nil }
        (host, self.size) = (String(parts[0]), size)
    }
}

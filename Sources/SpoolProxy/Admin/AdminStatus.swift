#if Proxy
import ByteRanges
import Foundation
import Spool
import SpoolStorage

/// The current state of the cache and the server, for `/.spool/api/status`.
struct AdminStatus: Encodable, Sendable {
    struct Transfer: Encodable, Sendable {
        /// The scheme, the host and the path.
        var url: String
        /// The offset of the first byte.
        var start: Int64
        /// The offset of the next byte.
        var position: Int64
        /// The offset after the last byte, or `null` if it is unknown.
        @EncodedAsNull var end: Int64?
    }

    struct Media: Encodable, Sendable {
        /// The scheme, the host and the path.
        var url: String
        /// The number of stored bytes, including those of all files of a stream.
        var storedBytes: Int64
        /// The length of the file, or of a stream's playlist, or `null` if it is unknown.
        @EncodedAsNull var length: Int64?
        /// The stored ranges of the file, or of a stream's playlist.
        var ranges: [[Int64]]
        /// The number of files that are stored at least partly.
        var files: Int
        /// The number of completely stored files.
        var completeFiles: Int
        var pinned: Bool
        var lastUsed: Date
    }

    /// The stored media of one host.
    struct Host: Encodable, Sendable {
        /// The name of the host, and its port if the URL contains one.
        var host: String
        var storedBytes: Int64
        /// The number of stored files.
        var files: Int
    }

    /// The stored media of one media type.
    struct MediaType: Encodable, Sendable {
        /// The media type without parameters, or an empty string if it is unknown.
        var type: String
        var storedBytes: Int64
        /// The number of stored files.
        var files: Int
    }

    private enum CodingKeys: String, CodingKey { case version, started, hosts, types, media, transfers }

    /// The version of Spool.
    var version: String
    /// The time at which the server started.
    var started: Date
    var totals: DashboardTotals
    /// The hosts with the most stored bytes.
    var hosts: [Host]
    /// The media types with the most stored bytes.
    var types: [MediaType]
    /// The most recently used media, most recent first. A stream with all its files is one entry.
    var media: [Media]
    /// The running requests to origins.
    var transfers: [Transfer]

    /// The maximum number of records to read from the catalog.
    private static let recordLimit = 5000
    /// The maximum number of entries in ``media``.
    private static let mediaLimit = 100
    /// The maximum number of entries in ``hosts`` and ``types``.
    private static let shareLimit = 50

    /// Reads the state. If there are too many records to read, only the most recently used ones are included.
    ///
    /// - Throws: `CacheError` with code `.storage` if the catalog cannot be read.
    init(
        of cache: MediaCache, started: Date, totals: (CacheActivity, _ fileCount: Int) -> DashboardTotals
    ) async throws {
        let activity = cache.activity
        let (recent, count) = try await cache.recentResources(limit: Self.recordLimit)
        version = SpoolVersion.current
        self.started = started
        self.totals = totals(activity, count)
        hosts = Self.shares(of: recent) { Self.host(of: $0.redactedURL) }.map(Host.init)
        types = Self.shares(of: recent) { media in
            String(media.contentType?.prefix { $0 != ";" } ?? "").trimmingCharacters(in: .whitespaces).lowercased()
        }.map(MediaType.init)
        media = StoredPresentation.presentations(in: recent).prefix(Self.mediaLimit).map(Media.init)
        transfers = activity.transfers.map {
            Transfer(url: $0.redactedURL, start: $0.start, position: $0.position, end: $0.end)
        }
    }

    func encode(to encoder: any Encoder) throws {
        try totals.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(version, forKey: .version)
        try container.encode(started, forKey: .started)
        try container.encode(hosts, forKey: .hosts)
        try container.encode(types, forKey: .types)
        try container.encode(media, forKey: .media)
        try container.encode(transfers, forKey: .transfers)
    }

    /// Returns the stored bytes and the number of files for each name, largest share first.
    private static func shares(
        of contents: [StoredResource], _ name: (StoredResource) -> String
    ) -> [(String, Int64, Int)] {
        var shares: [String: (bytes: Int64, files: Int)] = [:]
        for media in contents {
            let share = shares[name(media)] ?? (0, 0)
            shares[name(media)] = (
                min(share.bytes + media.storedByteCount, NumberLimits.byteOffset), share.files + 1
            )
        }
        return shares.map { ($0, $1.bytes, $1.files) }.sorted { ($1.1, $0.0) < ($0.1, $1.0) }.prefix(shareLimit).map {
            $0
        }
    }

    private static func host(of url: String) -> String {
        guard let start = url.firstRange(of: "://")?.upperBound else { return "" }
        return String(url[start...].prefix { $0 != "/" })
    }
}

extension AdminStatus.Media {
    init(_ stored: StoredPresentation) {
        url = stored.media.redactedURL
        storedBytes = stored.byteCount
        _length = EncodedAsNull(wrappedValue: stored.media.length)
        ranges = stored.media.storedRanges.prefix(500).map { [$0.lowerBound, $0.upperBound] }
        files = stored.fileCount
        completeFiles = stored.completeFileCount
        pinned = stored.media.isPinned
        lastUsed = stored.media.lastUsed
    }
}
#endif

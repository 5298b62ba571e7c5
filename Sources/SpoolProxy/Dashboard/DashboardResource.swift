#if Proxy
import Foundation
import Spool

/// The stored part of a file, or of a stream with all its files, as the live page shows it.
struct DashboardResource: Encodable, Sendable, Equatable {
    /// The kind of a resource.
    enum Kind: String, Encodable, Sendable { case file, hls, dash }

    /// The maximum number of entries in ``ranges``.
    private static let rangeLimit = 200

    /// The hash of the cache key.
    var key: String
    /// The scheme, the host and the path.
    var url: String
    var kind: Kind
    /// The media type.
    @EncodedAsNull var contentType: String?
    /// The length of the file. It is `null` for a stream.
    @EncodedAsNull var length: Int64?
    /// The number of stored bytes, including those of all files of a stream.
    var storedBytes: Int64
    /// The stored ranges of the file, or of a stream's playlist.
    var ranges: [[Int64]]
    /// The number of files that are stored at least partly.
    var files: Int
    /// The number of completely stored files.
    var completeFiles: Int
    /// Whether all bytes of the file are stored. The value is always `false` for a stream, because its playlists may
    /// list more files than have been requested so far.
    var complete: Bool
    var pinned: Bool
    var lastUsed: Date

    /// - Parameter isPart: Whether the resource is shown as a file of a stream. A media playlist then counts as a file.
    init(_ stored: StoredPresentation, isPart: Bool = false) {
        let media = stored.media
        key = media.key.hash
        url = media.redactedURL
        kind = isPart ? .file : Self.kind(of: stored)
        _contentType = EncodedAsNull(wrappedValue: media.contentType)
        _length = EncodedAsNull(wrappedValue: kind == .file ? media.length : nil)
        storedBytes = stored.byteCount
        ranges = media.storedRanges.prefix(Self.rangeLimit).map { [$0.lowerBound, $0.upperBound] }
        files = stored.fileCount
        completeFiles = stored.completeFileCount
        complete = kind == .file && media.isComplete
        pinned = media.isPinned
        lastUsed = media.lastUsed
    }

    /// Returns the kind of a resource, based on its media type or, if that is not conclusive, on its path.
    private static func kind(of stored: StoredPresentation) -> Kind {
        let type = stored.media.contentType?.lowercased() ?? ""
        if type.contains("mpegurl") { return .hls }
        if type.contains("dash+xml") { return .dash }
        let path = stored.media.redactedURL.lowercased()
        if path.hasSuffix(".m3u8") { return .hls }
        if path.hasSuffix(".mpd") { return .dash }
        return stored.parts.isEmpty ? .file : .hls
    }
}

/// The list of stored resources.
struct DashboardResources: Encodable, Sendable {
    /// The number of stored resources.
    var count: Int
    /// The most recently used resources, most recent first.
    var resources: [DashboardResource]
}
#endif

#if Proxy
import Foundation
import Spool

/// Brings the files of a stream into a cache, some at a time.
struct StreamDownload: Sendable {
    private let presentation: PresentationSource
    private let cache: MediaCache
    private let width: Int

    /// - Parameter concurrency: Files at once; at least 1.
    init(_ source: MediaSource, in cache: MediaCache, concurrency: Int) {
        presentation = PresentationSource(source, now: cache.now)
        self.cache = cache
        width = max(1, concurrency)
    }

    /// The source of the playlist or manifest that names all.
    var source: MediaSource { presentation.source }

    /// Reads a playlist or manifest; of one that is longer than `limit`, which is none, not more than it takes to see that.
    func manifest(at url: URL, limit: Int) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        for try await chunk in media(at: url).preloadReader() {
            chunk.withUnsafeBytes { bytes.append(contentsOf: $0) }
            if bytes.count > limit { break }
        }
        return bytes
    }

    /// Brings what is not stored yet.
    ///
    /// - Throws: As ``HLSDownloader/run(_:)``.
    func bring(_ files: [StreamFile], _ tally: DownloadTally) async throws {
        tally.begin(segments: files.count(where: \.isSegment))
        let brought = try await withThrowingTaskGroup(of: Brought.self) { group in
            var brought: [Brought] = []
            for (index, file) in files.enumerated() {
                if index >= width, let done = try await group.next() { brought.append(done) }
                group.addTask { try await bring(file, tally) }
            }
            for try await done in group { brought.append(done) }
            return brought
        }
        try await checkAllIsKept(brought)
    }

    private struct Brought: Sendable {
        var url: URL
        var range: Range<Int64>
    }

    private func bring(_ file: StreamFile, _ tally: DownloadTally) async throws -> Brought {
        let media = media(at: try Self.url(of: file.url))
        let range = file.byteRange.map { MediaRange.bytes($0) } ?? .all
        // A slice tells that the bytes are there, and proven, without reading them.
        let reader = media.preloadReader(range, chunkSize: 1 << 20, handsOutSlices: true)
        let start = file.byteRange?.lowerBound ?? 0
        var end = start
        do {
            while let chunk = try await reader.next() {
                end = chunk.range.upperBound
                tally.add(Int64(chunk.count))
            }
        } catch let error as CacheError where error.code == .unsatisfiableRange && file.byteRange == nil {
            // An empty file is one that is stored whole.
            guard try await media.contentInformation().length == 0 else { throw error }
        }
        if let wanted = file.byteRange, end < wanted.upperBound, !file.isEstimate {
            throw CacheError(
                .malformedResponse,
                "\(file.url.nameForMessages) ends at byte \(end), and what names it has bytes up to \(wanted.upperBound) of it",
                key: media.key, range: wanted)
        }
        if file.isSegment { tally.stored() }
        return Brought(url: media.source.url, range: start..<end)
    }

    /// A cache that is too small, or whose disk is full, hands bytes on without keeping them, and so does any with what is
    /// no media.
    private func checkAllIsKept(_ brought: [Brought]) async throws {
        // The process that has the directory keeps them, and may not have written them down yet.
        if cache.isReadOnly { return }
        for file in brought where !file.range.isEmpty {
            let media = media(at: file.url)
            let kept = try await media.keptRanges()
            guard !kept.contains(file.range) else { continue }
            let isPage = try await media.contentInformation().mimeType?.hasPrefix("text/html") == true
            throw CacheError(
                isPage ? .malformedResponse : .capacityExceeded,
                "\(media.source.displayAddress) came, and could not be kept with the rest of its stream: only \(kept.byteCount.counted("byte")) of it",
                key: media.key, range: file.range)
        }
    }

    func media(at url: URL) -> MediaResource {
        var source = presentation.part(at: url)
        let whole = presentation.source
        if url != whole.url { source.presentation = cache.key(for: whole) }
        return cache.media(for: source)
    }

    /// Where what it names is relative to.
    static func address(of media: MediaResource, _ response: StoredResponse) throws(ManifestError) -> OriginURL {
        do {
            let asked = try OriginURL(media.resolvedURL)
            // It is noted without its query, which is the asked one's unless it has moved.
            guard let final = try response.url.map({ (url) throws(AddressError) in try OriginURL(url) }),
                !final.isSameOrigin(as: asked) || final.path != asked.path
            else { return asked }
            return final
        } catch {
            throw ManifestError(.address, "\(error)")
        }
    }

    static func url(of address: OriginURL) throws -> URL {
        guard let url = address.url else {
            throw CacheError(.invalidArgument, "\(address.nameForMessages) can't be asked for")
        }
        return url
    }
}
#endif

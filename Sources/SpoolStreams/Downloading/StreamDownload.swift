import ByteRanges
import Foundation
import Spool
import Synchronization

/// The progress of a stream download.
public struct StreamProgress: Sendable, Hashable {
    /// The number of completely stored segments.
    public internal(set) var storedSegmentCount = 0
    /// The number of segments to store. It is 0 until the playlists or the manifest have been read.
    public internal(set) var segmentCount = 0
    /// The number of stored bytes of all files: playlists or manifest, keys, initialization sections and segments.
    public internal(set) var bytes: Int64 = 0

    /// The stored fraction of the segments, from 0 to 1.
    public var fractionCompleted: Double {
        segmentCount > 0 ? Double(storedSegmentCount) / Double(segmentCount) : 0
    }
}

/// A counter of the stored segments and bytes of a download. It reports each change, one call at a time. Changes during
/// a report are reported together.
final class DownloadTally: Sendable {
    private struct State {
        var progress = StreamProgress()
        /// Whether the progress has changed since the last report.
        var isChanged = false
        var isReporting = false
    }

    private let state = Mutex(State())
    private let report: @Sendable (StreamProgress) -> Void

    init(_ report: @escaping @Sendable (StreamProgress) -> Void) { self.report = report }

    var progress: StreamProgress { state.withLock { $0.progress } }

    /// Sets the number of segments to store.
    func start(segments: Int) { change { $0.segmentCount = segments } }

    /// Adds to the number of stored bytes.
    func add(_ bytes: Int64) { change { $0.bytes += bytes } }

    /// Counts a segment that is stored completely.
    func stored() { change { $0.storedSegmentCount += 1 } }

    /// Changes and reports the progress. No lock is held during the report. If another thread is reporting, that thread
    /// also reports this change.
    private func change(_ change: (inout StreamProgress) -> Void) {
        let isFirst = state.withLock { state in
            change(&state.progress)
            state.isChanged = true
            defer { state.isReporting = true }
            return !state.isReporting
        }
        guard isFirst else { return }
        while let progress = nextReport() { report(progress) }
    }

    private func nextReport() -> StreamProgress? {
        state.withLock { state in
            guard state.isChanged else {
                state.isReporting = false
                return nil
            }
            state.isChanged = false
            return state.progress
        }
    }
}

/// A concurrent download of a stream's files into a cache.
struct StreamDownload: Sendable {
    /// The maximum number of requests for a file whose response is empty.
    private static let attempts = 3

    private let presentation: PresentationSource
    private let cache: MediaCache
    private let width: Int
    private let isDownload: Bool
    /// A function that throws an error if the URL of a file may not be requested.
    var check: @Sendable (OriginURL) throws -> Void = { _ in }

    /// Creates a download.
    ///
    /// - Parameters:
    ///   - maximumConcurrentDownloads: The maximum number of files to download at the same time, at least 1.
    ///   - isDownload: Whether the stream is downloaded for offline playback, rather than preloaded.
    init(_ source: MediaSource, in cache: MediaCache, maximumConcurrentDownloads: Int, isDownload: Bool = true) {
        self.isDownload = isDownload
        presentation = PresentationSource(source, now: cache.now)
        self.cache = cache
        width = max(1, maximumConcurrentDownloads)
    }

    /// The source of the first playlist, or of the manifest.
    var source: MediaSource { presentation.source }

    /// Reads a playlist or manifest. Reading stops soon after `limit` bytes, because a longer manifest is rejected.
    func manifest(at url: URL, limit: Int) async throws -> [UInt8] {
        try check(try OriginURL(url))
        var bytes: [UInt8] = []
        for try await chunk in media(at: url).preloadReader() {
            chunk.withUnsafeBytes { bytes.append(contentsOf: $0) }
            if bytes.count > limit { break }
        }
        return bytes
    }

    /// Downloads the bytes that are not stored yet. If the origin does not have a file, or sends only empty responses
    /// for it, the others are still downloaded.
    ///
    /// - Throws: The same errors as ``HLSDownloader/run(_:)``.
    func run(_ files: [StreamFile], _ tally: DownloadTally) async throws {
        tally.start(segments: files.count(where: \.isSegment))
        let (downloaded, failure) = try await withThrowingTaskGroup(of: Result<Downloaded, CacheError>.self) { group in
            var downloaded: [Downloaded] = []
            var failure: CacheError?
            func add(_ result: Result<Downloaded, CacheError>) {
                switch result {
                case .success(let file): downloaded.append(file)
                case .failure(let error): failure = failure ?? error
                }
            }
            for (index, file) in files.enumerated() {
                if index >= width, let result = try await group.next() { add(result) }
                group.addTask {
                    do {
                        for _ in 0..<Self.attempts {
                            if let downloaded = try await download(file, tally) { return .success(downloaded) }
                        }
                        return .failure(await media(at: try Self.url(of: file.url)).removeEmptyResponse())
                    } catch let error as CacheError where Self.isMissingFile(error) {
                        return .failure(error)
                    }
                }
            }
            for try await result in group { add(result) }
            return (downloaded, failure)
        }
        if let failure { throw failure }
        try await checkAllIsStored(downloaded)
    }

    /// Returns whether the origin does not have a file. After other errors, such as rejected credentials, requests for
    /// other files would probably fail, too.
    private static func isMissingFile(_ error: CacheError) -> Bool {
        error.code == .originErrorStatus && [404, 410].contains(error.httpStatus)
    }

    private struct Downloaded: Sendable {
        var url: URL
        var range: Range<Int64>
        /// The reason why the file was not stored when it was received; `nil` if it was stored.
        var loss: MediaResource.Loss?
    }

    /// Downloads a file. Returns `nil` if the origin sent an empty response although media is expected.
    private func download(_ file: StreamFile, _ tally: DownloadTally) async throws -> Downloaded? {
        try check(file.url)
        let media = media(at: try Self.url(of: file.url))
        let range = file.byteRange.map { MediaRange.bytes($0) } ?? .all
        try await media.checkStorable(range)
        // A slice proves that the bytes are stored and verified, without copying them.
        let reader = media.preloadReader(range, chunkSize: 1 << 20, handsOutSlices: true)
        let start = file.byteRange?.lowerBound ?? 0
        var end = start
        do {
            while let chunk = try await reader.next() {
                end = chunk.range.upperBound
                tally.add(Int64(chunk.count))
            }
        } catch let error as CacheError where error.code == .unsatisfiableRange && file.byteRange == nil {
            // An empty file has no bytes to store.
            guard try await media.contentInformation().length == 0 else { throw error }
        }
        if media.isEmptyByMistake { return nil }
        if let wanted = file.byteRange, end < wanted.upperBound, !file.isEstimate {
            throw CacheError(
                .malformedResponse,
                "\(file.url.nameForMessages) ends at byte \(end), but the manifest specifies bytes up to "
                    + "\(wanted.upperBound)",
                key: media.key, range: wanted)
        }
        if file.isSegment { tally.stored() }
        return Downloaded(url: media.source.url, range: start..<end, loss: try await media.openLoss)
    }

    /// Checks that all files are stored. A cache that is too small, or whose disk is full, delivers bytes without
    /// storing them. Responses that are not media are not stored, either.
    private func checkAllIsStored(_ downloaded: [Downloaded]) async throws {
        for file in downloaded where !file.range.isEmpty {
            let media = media(at: file.url)
            let (count, total) = (
                try await media.keptRanges(of: ByteRangeSet(file.range)).byteCount, Int64(file.range.count)
            )
            guard count < total else { continue }
            var loss = file.loss
            if loss == nil { loss = try await media.loss(ofByteCount: total - count) }
            throw media.lossError(stored: count, of: total, because: loss)
        }
    }

    func media(at url: URL) -> MediaResource {
        var source = presentation.part(at: url)
        source.isDownload = isDownload
        let whole = presentation.source
        if url != whole.url { source.presentation = cache.key(for: whole) }
        return cache.media(for: source)
    }

    /// Returns the URL of a manifest, to which its references are relative.
    static func address(of media: MediaResource, _ response: StoredResponse) throws(ManifestError) -> OriginURL {
        do {
            let requested = try OriginURL(media.resolvedURL)
            // The stored final URL does not contain a query. If there was no redirect, the requested URL has the
            // correct query.
            guard let final = try response.url.map({ (url) throws(AddressError) in try OriginURL(url) }),
                !final.isSameOrigin(as: requested) || final.path != requested.path
            else { return requested }
            return final
        } catch {
            throw ManifestError(.address, "\(error)")
        }
    }

    static func url(of address: OriginURL) throws -> URL {
        guard let url = address.url else {
            throw CacheError(.invalidArgument, "\(address.nameForMessages) cannot be requested")
        }
        return url
    }
}

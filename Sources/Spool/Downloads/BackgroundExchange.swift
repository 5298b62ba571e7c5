import ByteRanges
import Foundation
import HTTPRanges
import HTTPTypes
import SpoolStorage

/// One exchange between the downloads of a cache and a background session. It stores received files, and starts
/// transfers for missing ranges.
///
/// The exchange itself fetches only the first block of media that has no stored bytes. It also requests one byte before
/// it starts transfers.
struct BackgroundExchange: Sendable {
    private let downloads: Downloads
    private let session: any BackgroundTransferSession

    private var cache: MediaCache { downloads.cache }
    private var work: DownloadWork { downloads.work }

    init(_ downloads: Downloads, _ session: any BackgroundTransferSession) {
        self.downloads = downloads
        self.session = session
    }

    func handOver(chunkSize: Int64, maximumTransfers: Int) async throws -> BackgroundTransferReport {
        var report = BackgroundTransferReport()
        guard !work.isPaused else { return report }
        let members = try await members()
        work.isHandedOver = true
        var running = 0
        // If no transfer is running when this method returns, the cache's own downloads continue.
        defer { if running == 0 { work.isHandedOver = false } }
        await waitUntilIdle()
        let known = try await adopt(members, &report)
        running = known.count
        var canStart = true
        for member in members where running < maximumTransfers && !member.item.isComplete {
            do {
                if canStart { try await start(member) }
                let chunks = try await chunks(of: member, besides: known, size: chunkSize)
                guard let first = chunks.first else { continue }
                let request = try await request(for: first, of: member)
                for chunk in chunks.prefix(maximumTransfers - running) {
                    try await session.start(chunk.request(request, under: work.conditions))
                    running += 1
                    report.startedCount += 1
                }
            } catch {
                // The network connection has probably been lost, so the first block of other media is not requested.
                if (error as? CacheError)?.code == .originUnavailable { canStart = false }
                report.notHandedOver.append(try reportable(error, of: member.item))
            }
        }
        return report
    }

    func takeBack() async throws -> BackgroundTransferReport {
        var report = BackgroundTransferReport()
        do {
            for transfer in await session.transfers()
            where transfer.isRunning && BackgroundChunk(identifier: transfer.identifier) != nil {
                await session.remove(transfer.identifier)
            }
            _ = try await adopt(try await members(), &report)
        } catch {
            work.isHandedOver = false
            throw error
        }
        work.isHandedOver = false
        try await downloads.resume()
        return report
    }

    // MARK: - Members

    /// A resource in a set, and the source of its bytes if the source is known.
    struct Member: Sendable {
        var item: DownloadSet.Item
        var source: MediaSource?

        /// Returns an error about this resource, with a code and a cause.
        func error(_ code: CacheError.Code, _ cause: String) -> CacheError {
            CacheError(code, "\(item.redactedURL): \(cause)", key: item.key)
        }
    }

    /// Returns the resources in all sets, without duplicates.
    ///
    /// - Throws: `CacheError` if the cache can't be written to.
    private func members() async throws -> [Member] {
        let store = try await cache.store
        if let cause = store.readOnlyReason { throw cause }
        var seen: Set<CacheKey> = []
        return try await store.downloads.members(of: nil).compactMap { record in
            let item = work.item(record)
            guard seen.insert(item.key).inserted else { return nil }
            var source = work.running(item.key)?.source ?? downloads.source(of: item)
            source?.isDownload = true
            return Member(item: item, source: source)
        }
    }

    /// Waits until the cache's own downloads have stopped and their bytes are stored.
    private func waitUntilIdle() async {
        await work.waitUntilPaused()
        await cache.resources.waitUntilClosed()
    }

    /// Returns the stored version of a resource. Returns `nil` if there is none, or if the origin now has a different
    /// version.
    private func version(of member: Member) async throws -> Lease? {
        guard let lease = try await cache.store.lease(member.item.key) else { return nil }
        guard lease.generation.storedFreshness?.exclusion == nil else { return nil }
        return lease
    }

    /// Requests the first block of a resource, if its source is known and no current version is stored.
    private func start(_ member: Member) async throws {
        guard let source = member.source else { return }
        if let lease = try await version(of: member) { return lease.end() }
        do {
            let reader = cache.media(for: source).preloadReader(.bytes(0..<1), chunkSize: 1)
            _ = try await reader.next()
        }
        await cache.resources.waitUntilClosed()
    }

    /// Returns the error to report for an item, or for a range of an item.
    ///
    /// - Throws: The error itself if it must end the exchange.
    private func reportable(
        _ error: any Error, of item: DownloadSet.Item, _ range: Range<Int64>? = nil
    ) throws -> CacheError {
        if error is CancellationError { throw error }
        guard let error = error as? CacheError else {
            return CacheError(
                .originUnavailable, "\(item.redactedURL): \(error)", key: item.key, range: range, underlying: error)
        }
        if error.code == .closed { throw error }
        return error.about(item.key, range)
    }

    // MARK: - Missing ranges

    /// Returns the chunks to request for a resource.
    ///
    /// - Parameter known: The chunks that are being fetched.
    /// - Throws: `CacheError` with the reason why the resource can't be handed over.
    private func chunks(
        of member: Member, besides known: [BackgroundChunk], size: Int64
    ) async throws -> [BackgroundChunk] {
        guard member.source != nil else {
            throw member.error(.incomplete, "the full URL was not recorded; add the resource again")
        }
        guard let lease = try await version(of: member) else {
            throw member.error(.incomplete, "no response has been stored")
        }
        defer { lease.end() }
        let version = lease.generation.resourceVersion
        guard let length = version.length else { throw member.error(.incomplete, "the length is unknown") }
        guard let validator = version.validator.ifRangeText else {
            throw member.error(.incomplete, "the origin sent no strong validator")
        }
        guard version.contentEncoding == nil else {
            throw member.error(.incomplete, "the response has a Content-Encoding")
        }
        // A variant has its own key, and is not a member of the set.
        guard cache.freshness != .http || lease.generation.storedFreshness?.matches([:]) != false else {
            throw member.error(.incomplete, "the response depends on request header fields (Vary)")
        }
        try await work.checkReservedSpace(for: length, member.item.key, member.item.redactedURL, in: cache)
        let running = ByteRangeSet(known.filter { $0.key == member.item.key }.map(\.range))
        return BackgroundChunk.ranges(
            length: length, stored: lease.generation.storedRanges, running: running, size: size
        )
        .map { BackgroundChunk(key: member.item.key, range: $0, length: length, validator: validator) }
    }

    /// Returns the request for a resource, without a range, and with the current header fields of its source.
    ///
    /// A request for one byte is sent first. If the origin ignores its range, an error is thrown, because otherwise
    /// every transfer would receive the whole resource.
    private func request(for chunk: BackgroundChunk, of member: Member) async throws -> UpstreamRequest {
        guard let source = member.source else {
            throw member.error(.incomplete, "the full URL was not recorded; add the resource again")
        }
        let exchange = OriginExchange(credentials: cache.credentials(of: source), context: cache.context)
        func ask() async throws -> OriginExchange.Opened {
            let opened = try await exchange.open(as: .preload) { request in
                request.headerFields[.range] = RangeHeader.text(for: 0..<1)
                request.headerFields[.ifRange] = chunk.validator
            }
            opened.connection.end()
            return opened
        }
        do {
            var opened = try await ask()
            if try await exchange.refreshesCredentials(after: opened) { opened = try await ask() }
            let status = opened.response.head.status.code
            switch status {
            case 206: break
            case 200: throw member.error(.incomplete, "the origin does not send byte ranges of the stored version")
            default:
                let text = "\(member.item.redactedURL): the origin responded with status \(status)"
                throw CacheError(.originErrorStatus, text, status: status, key: member.item.key)
            }
            var request = try await exchange.prepare().request
            if let cookies = request.cookies {
                request.headerFields[.cookie] = cookies.text(
                    for: request.url, adding: request.headerFields[.cookie], at: cache.now())
            }
            return request
        } catch {
            throw exchange.reported(error, at: source.redactedURL)
        }
    }

    // MARK: - Received files

    /// Stores the received files, and removes all transfers from the session except those that are running and still
    /// needed.
    ///
    /// - Returns: The chunks that are being fetched.
    private func adopt(
        _ members: [Member], _ report: inout BackgroundTransferReport
    ) async throws -> [BackgroundChunk] {
        var running: [BackgroundChunk] = []
        for transfer in await session.transfers() {
            // Another build may have started transfers whose identifiers this build can't parse.
            guard let chunk = BackgroundChunk(identifier: transfer.identifier) else { continue }
            let member = members.first { $0.item.key == chunk.key }
            do {
                guard let member else { throw CacheError(.notStored, "\(chunk.key) is not in a set", key: chunk.key) }
                switch transfer.state {
                case .running:
                    try await currentVersion(of: chunk, member).end()
                    running.append(chunk)
                    continue
                case .failed(let error):
                    throw CacheError(.originUnavailable, "the background transfer failed: \(error)", underlying: error)
                case .finished(let head, let file):
                    report.storedByteCount += try await store(chunk, head, file, member)
                }
            } catch {
                let discarded = try discarded(chunk, member, error)
                report.discarded.append(discarded)
                let address = member?.item.redactedURL ?? "\(chunk.key)"
                cache.context.events.send(.notCached(cause: discarded), key: chunk.key, redactedURL: address)
            }
            await session.remove(transfer.identifier)
        }
        return running
    }

    /// Returns the error for a discarded chunk, with its URL, range and cause.
    private func discarded(_ chunk: BackgroundChunk, _ member: Member?, _ error: any Error) throws -> CacheError {
        guard let member else { return (error as? CacheError ?? CacheError(.notStored, "\(error)")).about(chunk.key) }
        let error = try reportable(error, of: member.item, chunk.range)
        return CacheError(
            error.code, "\(member.item.redactedURL), \(chunk.range.inWords): discarded, because \(error.message)",
            status: error.httpStatus, key: chunk.key, range: chunk.range, underlying: error.underlying)
    }

    /// Returns the stored version. Throws an error if the chunk is not part of that version.
    private func currentVersion(of chunk: BackgroundChunk, _ member: Member) async throws -> Lease {
        let lease = try await version(of: member)
        let current = lease?.generation.resourceVersion
        guard let lease, current?.validator.ifRangeText == chunk.validator, current?.length == chunk.length else {
            throw CacheError(.resourceChanged, "a different version has been stored in the meantime")
        }
        return lease
    }

    /// Stores the bytes of a received file in the same way as those of a response.
    ///
    /// - Returns: The number of bytes that were not stored before.
    private func store(
        _ chunk: BackgroundChunk, _ head: HTTPResponse, _ file: URL, _ member: Member
    ) async throws -> Int64 {
        let lease = try await currentVersion(of: chunk, member)
        defer { lease.end() }
        let range = chunk.range
        let before = lease.generation.storedRanges.intersection(range).byteCount
        guard before < range.upperBound - range.lowerBound else { return 0 }
        let received = try await cache.context.executor.run(in: .background) {
            try ReceivedChunk(chunk, head, at: file.path)
        }
        let stored = lease.generation.storedRanges.bounds?.upperBound ?? 0
        try received.check(against: StoredVersion(version: lease.generation.resourceVersion, storedEnd: stored))
        try await work.checkReservedSpace(for: chunk.length, chunk.key, member.item.redactedURL, in: cache)
        guard let url = URL(string: member.item.redactedURL) else {
            throw CacheError(.invalidArgument, "the recorded URL is invalid")
        }
        var source = MediaSource(url: url, key: chunk.key)
        source.isDownload = true
        source.upstreamOverride = ReceivedChunkUpstream(received: received, executor: cache.context.executor)
        let media = cache.media(for: source)
        // The version is not validated again, because the received response has already confirmed it.
        let reader = MediaReader(
            media: media, range: .bytes(range), priority: .preload, chunkSize: 1 << 20, handsOutSlices: true,
            use: .stale, isCounted: false)
        while try await reader.next() != nil {}
        try Task.checkCancellation()
        let kept = try await media.keptRanges().intersection(range).byteCount
        guard kept == range.upperBound - range.lowerBound else {
            throw CacheError(.incomplete, "only \(kept.counted("byte")) of the received file could be stored")
        }
        return kept - before
    }
}

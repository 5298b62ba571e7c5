import ByteRanges
import Foundation
import HTTPRanges
import SpoolStorage
import Synchronization

/// Reads a byte range of a media file in order: from the cache what has landed, and the rest as it lands.
///
/// ```swift
/// for try await chunk in media.reader(in: 1_000_000...) { try await out.write(chunk.data) }
/// ```
///
/// Pull-based: while nobody asks for the next chunk, at most the read-ahead window is fetched beyond it. A reader never
/// holds bytes of its own, and two readers of the same hole share one transfer. One task, or thread, at a time may pull;
/// ``cancel()`` and ``seek(to:)`` may be called from anywhere. Releasing the reader ends it; what landed stays.
public final class MediaReader: AsyncSequence, Sendable {
    /// A piece of the file.
    public typealias Element = MediaChunk

    /// A reader that has a place in its resource.
    private struct Open {
        let id: ReaderID
        let resource: OpenResource
        let place: ReaderPosition
        var position: Int64
        /// Whether it is where the last bytes of a version stand, and the reader does not know its own version yet.
        var isCountedFromEnd = false
        /// Keeps the reader's own resource open; `nil` if the reader uses a shared one.
        var own: MediaResource?
        /// The version that the last bytes came from, and how far the reader may go on in it by itself.
        var lease: Lease?
        var freeUntil: Int64 = 0

        init(_ reader: MediaResource.OpenedReader, position: Int64) {
            (id, resource, place, own) = (reader.id, reader.resource, reader.position, reader.own)
            self.position = position
        }
    }

    private enum Phase {
        /// Has no place yet; with the offset that it was sent to. → open, finished, cancelled
        case unopened(at: Int64?)
        /// → unopened, finished, cancelled
        case open(Open)
        /// Has come to the end of its range, or to an error. → unopened, cancelled
        case finished
        case cancelled
    }

    let media: MediaResource
    private let range: MediaRange
    private let priority: Priority
    private let chunkSize: Int64
    let handsOutSlices: Bool
    private let phase = Mutex(Phase.unopened(at: nil))
    /// For a place in the resource.
    private let waits = EndableWaits()
    /// How often a read of the disk that fails for the moment is tried again.
    private static let retries = 2

    private let demand: FreshnessDemand
    /// How it may use what is stored, whatever that says; nil: as that says.
    private let use: StoredFreshness.Use?
    private let ahead: ReadAheadStart
    /// Whether what it hands over has been served to somebody.
    private let isCounted: Bool
    /// For a player's first bytes.
    let watch: FirstBytesWatch?

    init(
        media: MediaResource, range: MediaRange, priority: Priority, chunkSize: Int, handsOutSlices: Bool = false,
        demand: FreshnessDemand = .init(), use: StoredFreshness.Use? = nil, ahead: ReadAheadStart = .full,
        isCounted: Bool = true
    ) {
        self.isCounted = isCounted
        self.watch = isCounted && priority == .playback ? FirstBytesWatch(media.resource) : nil
        self.ahead = ahead
        self.demand = demand
        self.use = use
        self.media = media
        self.range = range
        self.priority = priority
        self.chunkSize = Int64(Swift.max(chunkSize, 1))
        self.handsOutSlices = handsOutSlices
    }

    deinit { cancel() }

    /// The next chunk; nil at the end of the range, and after ``cancel()``.
    ///
    /// What has landed and lies in memory is handed over at once, on the calling thread.
    ///
    /// - Throws: `CacheError`: `.unsatisfiableRange` when the range begins at or past the end, `.resourceChanged` when
    ///   the origin's bytes changed under the reader, `.originUnavailable` or `.originRefused` when a hole can't be
    ///   filled, `.closed` when the cache has been closed; `CancellationError` when the task is cancelled.
    public func next() async throws -> MediaChunk? { try await next(upTo: chunkSize) }

    /// As ``next()``, with a chunk of another size at most.
    package func next(upTo limit: Int64) async throws -> MediaChunk? {
        try Task.checkCancellation()
        watch?.begin()
        if let chunk = readNow(limit) ?? (handsOutSlices ? nil : beginNow(limit)) { return chunk }
        if isFinished { return nil }
        return try await withTaskCancellationHandler {
            guard let executor = media.resource?.context.executor else { _ = try await media.opened(); return nil }
            // The scheduler wakes this task where its bytes are read: a chunk costs the way there and the way back.
            let chunk = try await executor.runAsync { try await self.pull(limit) }
            if chunk == nil { try Task.checkCancellation() }
            return chunk
        } onCancel: {
            cancel()
        }
    }

    /// Goes on at another offset of the resource: the next chunk is from there, and the end of the range stays.
    ///
    /// A reader that has come to its end, or to an error, goes on, too; one that was cancelled does not. A pull that waits
    /// meanwhile waits for the new place. Costs nothing but where it is read: what is being fetched for the old place and
    /// is wanted by nobody is given up.
    ///
    /// - Parameter offset: Where to go on, in bytes; past the end of the resource, the next pull throws.
    public func seek(to offset: Int64) {
        let former = phase.withLock { phase -> Open? in
            if case .cancelled = phase { return nil }
            defer { phase = .unopened(at: offset) }
            if case .open(let open) = phase { return open }
            return nil
        }
        if let former { former.resource.readers.close(former.id) }
        waits.end()
    }

    /// Ends the reader: a pull that waits returns nil. What landed stays, and other readers' transfers go on.
    public func cancel() {
        let former = phase.withLock { phase in
            defer { phase = .cancelled }
            return phase
        }
        if case .open(let open) = former { open.resource.readers.close(open.id) }
        waits.end()
    }

    /// Iterates over the chunks that are left.
    public func makeAsyncIterator() -> Iterator { Iterator(reader: self) }

    /// Pulls chunks.
    public struct Iterator: AsyncIteratorProtocol {
        let reader: MediaReader

        /// The next chunk, or nil at the end.
        public mutating func next() async throws -> MediaChunk? { try await reader.next() }
    }

    // MARK: - The head

    /// The head of the version that the reader is in: from the cache if that may be used, else as soon as the origin's
    /// response has come, before its bytes. A head goes with its own bytes: should the version change, the reader stays in
    /// this one and ends with `.resourceChanged` where its bytes end.
    ///
    /// Where the range begins past the end there is a head all the same. After ``seek(to:)`` it may be that of another
    /// version.
    ///
    /// - Throws: As ``next()``; `CancellationError` where the reader has been cancelled or has ended.
    package func response() async throws -> OpenedResponse {
        try Task.checkCancellation()
        if let known = try responseNow() { return known }
        return try await withTaskCancellationHandler {
            guard let executor = media.resource?.context.executor else {
                _ = try await media.opened()
                throw CancellationError()
            }
            return try await executor.runAsync { try await self.awaitResponse() }
        } onCancel: {
            cancel()
        }
    }

    /// The head of what is open and need not be asked about, on the calling thread.
    private func responseNow() throws -> OpenedResponse? {
        guard let resource = media.resource, resource.isLoaded else { return nil }
        let found: Open?
        switch phase.withLock({ $0 }) {
        case .open(let open): found = open
        case .unopened(let offset):
            // Said by the slow way.
            found = bounds(from: offset).flatMap { try? place($0.start, $0.end, asked: offset, in: resource) }
        case .finished, .cancelled: found = nil
        }
        guard let found, case .head(let head) = found.resource.headers.responseNow(found.id),
            stands(found, in: head.response.length)
        else { return nil }
        stays(found)
        return head
    }

    private func awaitResponse() async throws -> OpenedResponse {
        do {
            var moves = 0
            while let open = try await open() {
                switch await open.resource.headers.response(open.id) {
                case .head(let head):
                    if try leaves(open, of: head.response.length, &moves) { continue }
                    stays(open)
                    return head
                case .failure(let error):
                    if try leaves(open, of: open.resource.knownLength, &moves) { continue }
                    if finish(open) { throw error }
                case .gone: break
                case .apart: try goApart(open)
                }
            }
        } catch let error as CacheError where error.code == .unsatisfiableRange && range != MediaResource.beginning {
            // No byte stands there, and no transfer from there has told of a version.
            return try await media.response(demand: demand)
        }
        throw CancellationError()
    }

    // MARK: - What has landed

    /// The next chunk without waiting, asking nobody and changing threads: nil if it can't be had so.
    func readNow(_ limit: Int64) -> MediaChunk? {
        let found = phase.withLock { phase -> Open? in
            if case .open(let open) = phase, open.position < open.freeUntil { open } else { nil }
        }
        guard let found, let lease = found.lease, !found.resource.scheduler.isClosed else { return nil }
        let count = Swift.min(limit, found.freeUntil - found.position)
        guard let chunk = chunkNow(found.position..<found.position + count, holding: lease),
            took(chunk.range, as: found)
        else { return nil }
        return chunk
    }

    private func chunkNow(_ range: Range<Int64>, holding lease: Lease) -> MediaChunk? {
        if handsOutSlices, lease.generation.handsOutSlices {
            return lease.generation.sliceNow(range, holding: lease).map { MediaChunk($0) }
        }
        let data = lease.generation.dataNow(at: range.lowerBound, count: range.count)
        return data.map { MediaChunk(offset: range.lowerBound, data: $0) }
    }

    /// The first chunk, in the same way: of a resource that is open, where the bytes at the reader's beginning have landed
    /// and need not be asked about.
    func beginNow(_ limit: Int64) -> MediaChunk? {
        guard let resource = media.resource else { return nil }
        if case .unopened(let offset) = phase.withLock({ $0 }), let (start, end) = bounds(from: offset),
            let chunk = readAllNow(start, end, limit, asked: offset, of: resource)
        {
            return chunk
        }
        guard resource.isLoaded, let open = firstPlace(in: resource),
            case .bytes(let lease, _, let freeUntil) = open.resource.readers.pullNow(
                open.id, from: open.position, limit: limit),
            stands(open, in: lease.generation.description.length)
        else { return nil }
        mayGoOn(open, until: freeUntil, in: lease)
        return readNow(limit)
    }

    /// The place of a reader that has read nothing there yet.
    private func firstPlace(in resource: OpenResource) -> Open? {
        switch phase.withLock({ $0 }) {
        case .unopened(let offset):
            guard let (start, end) = bounds(from: offset) else { return nil }
            return try? place(start, end, asked: offset, in: resource)  // Said by the slow way.
        case .open(let open): return open.lease == nil ? open : nil
        case .finished, .cancelled: return nil
        }
    }

    /// All that the reader is for, where that is one chunk which has landed: it takes no place in the resource, which
    /// would make those who take theirs at once wait for one another.
    private func readAllNow(
        _ start: Int64, _ end: Int64?, _ limit: Int64, asked: Int64?, of resource: OpenResource
    ) -> MediaChunk? {
        guard let end, start >= 0, start < end, end - start <= limit,
            let lease = media.leaseOfLanded(start..<end, in: resource),
            let data = lease.generation.dataNow(at: start, count: Int(end - start)), data.count == end - start
        else { return nil }
        let isHere = phase.withLock { phase in
            guard case .unopened(let offset) = phase, offset == asked else { return false }
            phase = .finished
            return true
        }
        guard isHere else { return nil }
        if isCounted { noteServed(start..<end, by: resource) }
        return MediaChunk(offset: start, data: data)
    }

    /// Up to there the reader asks nobody.
    private func mayGoOn(_ place: Open, until end: Int64, in lease: Lease) {
        phase.withLock { phase in
            guard case .open(var open) = phase, open.id == place.id else { return }
            open.isCountedFromEnd = false
            open.lease = lease
            open.freeUntil = end
            phase = .open(open)
        }
    }

    /// Bytes are about to be handed over; false if the reader has left their place, so that nobody wants them.
    private func took(_ range: Range<Int64>, as place: Open) -> Bool {
        let isHere = phase.withLock { phase in
            guard case .open(var open) = phase, open.id == place.id else { return false }
            open.position = range.upperBound
            open.place.offset = range.upperBound
            phase = .open(open)
            return true
        }
        if isHere, isCounted { noteServed(range, by: place.resource) }
        return isHere
    }

    private func noteServed(_ range: Range<Int64>, by resource: OpenResource) {
        let fresh = resource.serving.served(range)
        watch?.end(isStored: fresh == 0)
    }

    /// The reader ends at this place; false if it has left it before.
    private func finish(_ place: Open) -> Bool {
        let isHere = phase.withLock { phase in
            guard case .open(let open) = phase, open.id == place.id else { return false }
            phase = .finished
            return true
        }
        if isHere { place.resource.readers.close(place.id) }
        return isHere
    }

    /// Whether the reader is where it has to be in a version of this length: the last bytes of another may stand elsewhere.
    private func stands(_ open: Open, in length: Int64?) -> Bool {
        guard open.isCountedFromEnd, let length, case .suffix(let count) = range else { return true }
        return open.position == Self.start(ofLast: count, of: length)
    }

    /// Leaves a place where the last bytes of another version stand; false where it stands in this one.
    ///
    /// - Throws: `CacheError` with code `.resourceChanged` where it is another version each time.
    private func leaves(_ place: Open, of length: Int64?, _ moves: inout Int) throws -> Bool {
        if stands(place, in: length) { return false }
        moves += 1
        guard moves <= Self.retries else {
            _ = finish(place)
            throw CacheError(
                .resourceChanged, "\(place.resource.address): each response is of another length", key: media.key)
        }
        let isHere = phase.withLock { phase in
            guard case .open(let open) = phase, open.id == place.id else { return false }
            phase = .unopened(at: nil)
            return true
        }
        if isHere { place.resource.readers.close(place.id) }
        return true
    }

    /// The reader knows its version from here on.
    private func stays(_ place: Open) {
        guard place.isCountedFromEnd else { return }
        phase.withLock { phase in
            guard case .open(var open) = phase, open.id == place.id else { return }
            open.isCountedFromEnd = false
            phase = .open(open)
        }
    }

    private static func start(ofLast count: Int64, of length: Int64) -> Int64 {
        Swift.max(0, length - Swift.max(count, 0))
    }

    /// Where the reader reads next, if that is known without asking.
    package var position: Int64? {
        switch phase.withLock({ $0 }) {
        case .open(let open): open.position
        case .unopened(let offset): bounds(from: offset)?.start
        case .finished, .cancelled: nil
        }
    }

    private var isFinished: Bool { if case .finished = phase.withLock({ $0 }) { true } else { false } }
    var isCancelled: Bool { if case .cancelled = phase.withLock({ $0 }) { true } else { false } }

    // MARK: - What has to be waited for, or read from the disk

    /// Finds, reads and counts the next chunk. On the blocking executor, which it blocks while it reads.
    func pull(_ limit: Int64) async throws -> MediaChunk? {
        var (failures, moves) = (0, 0)
        while let open = try await open() {
            switch await open.resource.readers.pull(open.id, from: open.place.offset, limit: limit) {
            case .end:
                if try leaves(open, of: open.resource.knownLength, &moves) { continue }
                if finish(open) { return nil }
            case .failure(let error):
                if try leaves(open, of: open.resource.knownLength, &moves) { continue }
                if finish(open) { throw error }
            case .apart: try goApart(open)
            case .bytes(let lease, let range, let freeUntil):
                if try leaves(open, of: lease.generation.description.length, &moves) { continue }
                do {
                    let chunk = try chunk(range, of: lease.generation)
                    mayGoOn(open, until: freeUntil, in: lease)
                    if took(chunk.range, as: open) { return chunk }
                } catch is MissingBytes {
                    // Evicted or found bad meanwhile: the scheduler knows, and has them brought again.
                    open.resource.missing(range, of: lease.generation)
                } catch let error as CacheError where error.code == .storage || error.code == .catalogDamaged {
                    // A file that can't be opened now, or seals that can't be read, cost nothing of what is stored: tried again, then left alone.
                    failures += 1
                    if failures > Self.retries { lease.generation.passOverDisk(error) }
                }
            }
        }
        return nil
    }

    private func chunk(_ range: Range<Int64>, of generation: Generation) throws -> MediaChunk {
        if handsOutSlices, generation.handsOutSlices { return MediaChunk(try generation.slice(range)) }
        return MediaChunk(offset: range.lowerBound, data: try generation.read(range))
    }

    /// Opens the resource and takes a place in it; nil if the reader has ended.
    private func open() async throws -> Open? {
        while true {
            let turn = waits.turn
            let asked: Int64?
            switch phase.withLock({ $0 }) {
            case .open(let open): return open
            case .finished, .cancelled: return nil
            case .unopened(let offset): asked = offset
            }
            do {
                let resource = try await opened(turn)
                var place = bounds(from: asked)
                if place == nil { place = try await boundsOfSuffix(in: resource, turn) }
                // Else it was sent elsewhere meanwhile, or cancelled.
                if let place, let open = try self.place(place.start, place.end, asked: asked, in: resource) {
                    return open
                }
            } catch  where waits.turn != turn && !Task.isCancelled {
                // It is of a place that the reader has left.
            }
        }
    }

    private func opened(_ turn: UInt64) async throws -> OpenResource {
        guard let resource = media.resource, resource.variants.waitsForResolver(of: media.credentials) else {
            return try await media.opened()
        }
        return try await wait(turn, in: resource) { media in try await media.opened() }
    }

    /// Where the last bytes stand, for which the origin may have to be asked.
    private func boundsOfSuffix(
        in resource: OpenResource, _ turn: UInt64
    ) async throws -> (start: Int64, end: Int64?)? {
        guard case .suffix(let count) = range else { return nil }
        let length = try await wait(turn, in: resource) { [priority] media in
            try await media.length(toFindLast: count, for: priority)
        }
        return (Self.start(ofLast: count, of: length), nil)
    }

    private func wait<R: Sendable>(
        _ turn: UInt64, in resource: OpenResource, _ body: @escaping @Sendable (MediaResource) async throws -> R
    ) async throws -> R {
        try await waits.run(turn, on: resource.context.executor.executor(for: .playback)) { [media] in
            try await body(media)
        }
    }

    /// Where the reader begins, and where it ends, if that does not depend on the length.
    private func bounds(from offset: Int64?) -> (start: Int64, end: Int64?)? {
        switch range {
        case .from(let start): (offset ?? start, nil)
        case .bytes(let range): (offset ?? range.lowerBound, Swift.max(range.upperBound, offset ?? range.upperBound))
        case .suffix: offset.map { ($0, nil) }
        }
    }

    /// Takes a place in the resource; nil if the reader has been cancelled, or sent elsewhere.
    private func place(_ start: Int64, _ end: Int64?, asked: Int64?, in resource: OpenResource) throws -> Open? {
        guard start >= 0, start <= Block.offsetLimit - Block.size else {
            throw CacheError(
                .unsatisfiableRange, "\(resource.address): no byte stands at offset \(start.grouped)", status: 416,
                key: media.key, range: start..<Swift.max(start, end ?? .max))
        }
        try media.check(demand, use, start..<Swift.max(start, end ?? .max), in: resource)
        var open = Open(
            media.openReader(
                at: start, end: end, priority: priority, demand: demand, use: use, ahead: ahead, in: resource),
            position: start)
        if case .suffix = range { open.isCountedFromEnd = asked == nil }
        let isOpen = phase.withLock { phase in
            guard case .unopened(let offset) = phase, offset == asked else { return false }
            phase = .open(open)
            return true
        }
        if !isOpen { open.resource.readers.close(open.id) }
        return isOpen ? open : nil
    }

    /// Moves the reader from the shared resource to its own, before its first byte.
    private func goApart(_ place: Open) throws {
        guard let (start, end) = bounds(from: place.position),
            let reader = media.openOwnReader(at: start, end: end, priority: priority, ahead: ahead)
        else { throw place.resource.closedError }
        var open = Open(reader, position: start)
        open.isCountedFromEnd = place.isCountedFromEnd
        let isHere = phase.withLock { phase in
            guard case .open(let current) = phase, current.place === place.place else { return false }
            phase = .open(open)
            return true
        }
        let left = isHere ? place : open
        left.resource.readers.close(left.id)
    }

    /// The media that the reader uses: its own resource if it needs one, otherwise the shared one.
    package var mediaInUse: MediaResource {
        if case .open(let open) = phase.withLock({ $0 }) { open.own ?? media } else { media }
    }
}

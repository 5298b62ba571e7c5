import Foundation
import Synchronization

/// A pool that limits the number of open media files. A file's descriptor is opened when its bytes are needed. If too
/// many descriptors are open, one that has not been used recently is closed.
///
/// A descriptor that a read or a slice uses stays open until its user releases it, even beyond the limit. The pool's
/// lock is taken before a file's lock. Neither lock is held while a file is opened.
final class FilePool: Sendable {
    private struct State {
        /// The files that have or had a descriptor. `hand` is the position of the clock algorithm.
        var ring: [Entry] = []
        var hand = 0
        /// The length of the ring at which released files are removed from it.
        var sweepAt = 512
        var isClosed = false
    }

    struct Entry {
        weak var file: PooledFile?
    }

    private let state = ClassedMutex(State(), .neverWaits)
    /// The number of descriptors that are open or about to be opened. The counter is not protected by the lock, because
    /// the clock may release the last reference to a file.
    private let count = Atomic(0)
    private let limit: Int

    /// Creates a pool of at most `limit` open files.
    init(limit: Int) { self.limit = limit }

    /// The number of open descriptors.
    var openCount: Int { count.load(ordering: .relaxed) }

    /// Prevents files from being opened. Open files stay open while they are used.
    func close() { state.withLock { $0.isClosed = true } }

    /// Counts one more descriptor, and closes others if too many are open.
    ///
    /// - Returns: `false` if the pool is closed.
    func reserveDescriptor() -> Bool {
        // The files are closed after the lock is released, because closing may block.
        let (isAllowed, closing) = state.withLock { state -> (Bool, [OpenFile]) in
            guard !state.isClosed else { return (false, []) }
            var closing: [OpenFile] = []
            while count.load(ordering: .relaxed) - closing.count >= limit, let file = Self.takeUnused(&state) {
                closing.append(file)
            }
            count.add(1, ordering: .relaxed)
            return (true, closing)
        }
        withExtendedLifetime(closing) {}
        return isAllowed
    }

    /// Closes unused files, up to half of the limit, because the system has no more descriptors.
    ///
    /// - Returns: Whether any files were closed.
    func relieve() -> Bool {
        let closing = state.withLock { state in
            var closing: [OpenFile] = []
            while closing.count < max(1, limit / 2), let file = Self.takeUnused(&state) { closing.append(file) }
            return closing
        }
        return !closing.isEmpty
    }

    /// Records that a descriptor was closed, or was not opened.
    func recordClosed() { count.subtract(1, ordering: .relaxed) }

    /// Adds a file with a descriptor to the ring.
    func enter(_ file: PooledFile) {
        state.withLock { state in
            if state.ring.count >= state.sweepAt {
                state.ring.removeAll { $0.file == nil }
                state.sweepAt = max(512, 2 * state.ring.count)
            }
            state.ring.append(Entry(file: file))
        }
    }

    /// The number of files in the ring, including released ones.
    var ringCount: Int { state.withLock { $0.ring.count } }

    /// Takes an unused file, as chosen by the clock algorithm, which skips files used since their last turn.
    private static func takeUnused(_ state: inout State) -> OpenFile? {
        var steps = 2 * state.ring.count
        while steps > 0, !state.ring.isEmpty {
            steps -= 1
            if state.hand >= state.ring.count { state.hand = 0 }
            switch state.ring[state.hand].file?.takeIfUnused() ?? .closed {
            case .inUse: state.hand += 1
            case .closed:
                state.ring.swapAt(state.hand, state.ring.count - 1)
                state.ring.removeLast()
            case .taken(let file):
                state.ring.swapAt(state.hand, state.ring.count - 1)
                state.ring.removeLast()
                return file
            }
        }
        return nil
    }
}

/// An open descriptor, which its pool counts until its last user releases it.
final class OpenFile: Sendable {
    private static let count = Atomic<UInt64>(0)

    /// The file.
    let file: any StoredFile
    /// The number of this open file, which is unique in the process.
    let number: UInt64
    // This property follows `file`, because properties are released in the order of declaration, and a descriptor
    // counts until it is closed. The pool's test depends on this order.
    private let place: Place?

    init(_ file: any StoredFile, pool: FilePool?) {
        self.file = file
        self.number = Self.count.wrappingAdd(1, ordering: .relaxed).newValue
        self.place = pool.map { Place(pool: $0) }
    }

    private final class Place: Sendable {
        let pool: FilePool

        init(pool: FilePool) { self.pool = pool }

        deinit { pool.recordClosed() }
    }
}

/// A file that is opened when its bytes are needed, and may be closed between two uses.
///
/// Its methods may be called from any thread. A descriptor that is in use stays open and its bytes stay readable, even
/// if the file is removed.
final class PooledFile: Sendable {
    private struct State {
        var open: OpenFile?
        /// Whether the file has been used since the pool's clock last reached it.
        var isRecent = false
        var isInRing = false
    }

    private let state: ClassedMutex<State>
    private let pool: FilePool?
    private let openExisting: @Sendable () throws(CacheError) -> (any StoredFile)?
    private let create: @Sendable () throws(CacheError) -> any StoredFile

    /// Creates a file in `pool`, without opening it.
    ///
    /// - Parameters:
    ///   - openExisting: A function that opens the file, or returns `nil` if it does not exist.
    ///   - create: A function that creates the file.
    init(
        pool: FilePool, openExisting: @escaping @Sendable () throws(CacheError) -> (any StoredFile)?,
        create: @escaping @Sendable () throws(CacheError) -> any StoredFile
    ) {
        self.pool = pool
        self.openExisting = openExisting
        self.create = create
        self.state = ClassedMutex(State(), .neverWaits)
    }

    /// Creates a pooled file from an open file that is never closed to free a descriptor. Caches in memory use it.
    init(_ file: any StoredFile) {
        self.pool = nil
        self.openExisting = { () throws(CacheError) in file }
        self.create = { () throws(CacheError) in file }
        self.state = ClassedMutex(State(open: OpenFile(file, pool: nil)), .neverWaits)
    }

    /// The open descriptor; `nil` if it would have to be opened.
    var openNow: OpenFile? {
        state.withLock { state in
            state.isRecent = true
            return state.open
        }
    }

    /// Returns the file, which is opened if necessary; `nil` if there is none.
    ///
    /// - Throws: ``CacheError`` with code `storage` if it can't be opened at the moment, or `closed` after the pool was
    ///   closed.
    func opened() throws(CacheError) -> OpenFile? {
        if let open = openNow { return open }
        return try keepIfFound(openExisting)
    }

    /// Returns the file, which is created if there is none.
    func openedOrCreated() throws(CacheError) -> OpenFile {
        if let open = try opened() { return open }
        return try keep(create)
    }

    /// Adopts a file that has just been created.
    ///
    /// - Returns: `false` if a file is already open, or if the pool is closed.
    func adopt(_ file: any StoredFile) -> Bool {
        guard pool?.reserveDescriptor() ?? true else { return false }
        return adopt(OpenFile(file, pool: pool)).isAdopted
    }

    /// Closes the descriptor as soon as it is no longer used.
    func close() {
        // The file is released after the lock has been released, because closing may block.
        let open = state.withLock { state in
            defer { state.open = nil }
            return state.open
        }
        withExtendedLifetime(open) {}
    }

    /// Returns the file that `open` returns, and keeps it open; `nil` if there is none.
    private func keepIfFound(
        _ open: () throws(CacheError) -> (any StoredFile)?
    ) throws(CacheError) -> OpenFile? {
        guard pool?.reserveDescriptor() ?? true else { throw CacheError(.closed, "the cache has been closed") }
        do {
            if let file = try withRelief(open) { return adopt(OpenFile(file, pool: pool)).open }
        } catch {
            pool?.recordClosed()
            throw error
        }
        pool?.recordClosed()
        return nil
    }

    private func keep(_ make: () throws(CacheError) -> any StoredFile) throws(CacheError) -> OpenFile {
        guard pool?.reserveDescriptor() ?? true else { throw CacheError(.closed, "the cache has been closed") }
        do {
            return adopt(OpenFile(try withRelief(make), pool: pool)).open
        } catch {
            pool?.recordClosed()
            throw error
        }
    }

    /// Calls `open`. If the system has no more descriptors, closes other files and tries again.
    private func withRelief<R>(_ open: () throws(CacheError) -> R) throws(CacheError) -> R {
        do {
            return try open()
        } catch {
            let isOutOfDescriptors = error.posixCode == .EMFILE || error.posixCode == .ENFILE
            guard isOutOfDescriptors, pool?.relieve() == true else { throw error }
            return try open()
        }
    }

    private func adopt(_ file: OpenFile) -> (open: OpenFile, isAdopted: Bool) {
        let (open, isAdopted, enters) = state.withLock { state -> (OpenFile, Bool, Bool) in
            // Another thread may have opened the file in the meantime.
            if let open = state.open { return (open, false, false) }
            state.open = file
            state.isRecent = true
            defer { state.isInRing = true }
            return (file, true, !state.isInRing)
        }
        if enters { pool?.enter(self) }
        return (open, isAdopted)
    }

    enum Taken {
        case inUse, closed
        case taken(OpenFile)
    }

    /// Takes the open file if it is unused, so that the pool's clock can close it.
    func takeIfUnused() -> Taken {
        state.withLock { state in
            guard state.open != nil else {
                state.isInRing = false
                return .closed
            }
            guard isKnownUniquelyReferenced(&state.open), !state.isRecent else {
                state.isRecent = false
                return .inUse
            }
            defer {
                state.open = nil
                state.isInRing = false
            }
            return state.open.map { .taken($0) } ?? .closed
        }
    }
}

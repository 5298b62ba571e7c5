import Synchronization

/// Bounds how many media files are open at once, whatever is open above: a file's descriptor is opened when its bytes
/// are wanted, and the one that was longest unused goes when there are too many.
///
/// A descriptor that is in use (by a read, or a slice that is being sent) stays open until its user lets go of it, also
/// beyond the limit. Two locks nest here: the pool's, then a file's; neither is held while a file is opened.
final class FilePool: Sendable {
    private struct State {
        /// Files that have a descriptor, or had one; `hand` goes round.
        var ring: [Entry] = []
        var hand = 0
        /// When the ring is this long, files that are no more are taken out of it.
        var sweepAt = 512
        var isClosed = false
    }

    struct Entry {
        weak var file: PooledFile?
    }

    private let state = Mutex(State())
    /// Descriptors open or about to be opened. Not behind the lock: the last reference to a file may be the clock's.
    private let count = Atomic(0)
    private let limit: Int

    /// Creates a pool of at most `limit` open files.
    init(limit: Int) { self.limit = limit }

    /// Descriptors that are open.
    var openCount: Int { count.load(ordering: .relaxed) }

    /// No file is opened any more; those that are open stay so while they are used.
    func close() { state.withLock { $0.isClosed = true } }

    /// Counts one more descriptor, closing others if there are too many; false if the pool is closed.
    func makePlace() -> Bool {
        // Closed after unlocking: closing may block.
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

    /// Closes what nobody uses, half of the limit at most, since the system has run out of descriptors.
    ///
    /// - Returns: Whether there was anything to close.
    func relieve() -> Bool {
        let closing = state.withLock { state in
            var closing: [OpenFile] = []
            while closing.count < max(1, limit / 2), let file = Self.takeUnused(&state) { closing.append(file) }
            return closing
        }
        return !closing.isEmpty
    }

    /// A descriptor is closed, or was not opened after all.
    func noteClosed() { count.subtract(1, ordering: .relaxed) }

    /// The file has a descriptor and takes part in the round.
    func enter(_ file: PooledFile) {
        state.withLock { state in
            if state.ring.count >= state.sweepAt {
                state.ring.removeAll { $0.file == nil }
                state.sweepAt = max(512, 2 * state.ring.count)
            }
            state.ring.append(Entry(file: file))
        }
    }

    /// How many files take part in the round, those that are no more included.
    var ringCount: Int { state.withLock { $0.ring.count } }

    /// The clock: passes over what is in use or was used since it last came by.
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

/// An open descriptor, counted by its pool until its last user lets go of it.
final class OpenFile: Sendable {
    /// The file.
    let file: any StoredFile
    // After the file: stored properties go in the order in which they are declared, and a descriptor counts until it has
    // been closed. The pool's test would see it otherwise.
    private let place: Place?

    init(_ file: any StoredFile, pool: FilePool?) {
        self.file = file
        self.place = pool.map { Place(pool: $0) }
    }

    private final class Place: Sendable {
        let pool: FilePool

        init(pool: FilePool) { self.pool = pool }

        deinit { pool.noteClosed() }
    }
}

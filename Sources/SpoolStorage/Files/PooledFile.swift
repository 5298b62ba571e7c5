import Foundation
import Synchronization

/// A file that is opened when its bytes are wanted, and may be closed between two uses.
///
/// Any thread may call. A descriptor that somebody holds stays open; so does what it shows, also if the file is removed.
final class PooledFile: Sendable {
    private struct State {
        var open: OpenFile?
        /// Used since the pool's clock last came by.
        var isRecent = false
        var isInRing = false
    }

    private let state: Mutex<State>
    private let pool: FilePool?
    private let openExisting: @Sendable () throws(CacheError) -> (any StoredFile)?
    private let create: @Sendable () throws(CacheError) -> any StoredFile

    /// A file of `pool`.
    ///
    /// - Parameters:
    ///   - openExisting: Opens the file; nil if there is none.
    ///   - create: Makes it.
    init(
        pool: FilePool, openExisting: @escaping @Sendable () throws(CacheError) -> (any StoredFile)?,
        create: @escaping @Sendable () throws(CacheError) -> any StoredFile
    ) {
        self.pool = pool
        self.openExisting = openExisting
        self.create = create
        self.state = Mutex(State())
    }

    /// A file that stays open: one in memory, or of a test.
    init(_ file: any StoredFile) {
        self.pool = nil
        self.openExisting = { () throws(CacheError) in file }
        self.create = { () throws(CacheError) in file }
        self.state = Mutex(State(open: OpenFile(file, pool: nil)))
    }

    /// The open descriptor; nil if it would have to be opened.
    var openNow: OpenFile? {
        state.withLock { state in
            state.isRecent = true
            return state.open
        }
    }

    /// The file, opened if need be; nil if there is none.
    ///
    /// - Throws: ``CacheError`` with code `storage` if it can't be opened this time, `closed` after the pool was closed.
    func opened() throws(CacheError) -> OpenFile? {
        if let open = openNow { return open }
        return try keepIfFound(openExisting)
    }

    /// The file, made if there is none.
    func openedOrCreated() throws(CacheError) -> OpenFile {
        if let open = try opened() { return open }
        return try keep(create)
    }

    /// Takes over a file that has just been made; false if there is an open one already or the pool is closed.
    func adopt(_ file: any StoredFile) -> Bool {
        guard pool?.makePlace() ?? true else { return false }
        return adopt(OpenFile(file, pool: pool)).isAdopted
    }

    /// Closes the descriptor as soon as nobody uses it.
    func close() {
        // Released after unlocking: closing may block.
        let open = state.withLock { state in
            defer { state.open = nil }
            return state.open
        }
        withExtendedLifetime(open) {}
    }

    /// The file that `open` finds, kept open; nil if it finds none.
    private func keepIfFound(
        _ open: () throws(CacheError) -> (any StoredFile)?
    ) throws(CacheError) -> OpenFile? {
        guard pool?.makePlace() ?? true else { throw CacheError(.closed, "the cache has been closed") }
        do {
            if let file = try withRelief(open) { return adopt(OpenFile(file, pool: pool)).open }
        } catch {
            pool?.noteClosed()
            throw error
        }
        pool?.noteClosed()
        return nil
    }

    private func keep(_ make: () throws(CacheError) -> any StoredFile) throws(CacheError) -> OpenFile {
        guard pool?.makePlace() ?? true else { throw CacheError(.closed, "the cache has been closed") }
        do {
            return adopt(OpenFile(try withRelief(make), pool: pool)).open
        } catch {
            pool?.noteClosed()
            throw error
        }
    }

    /// Once more after others have been closed, where no file can be opened any more.
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
            // Somebody else may have been faster.
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

    /// For the pool's clock.
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

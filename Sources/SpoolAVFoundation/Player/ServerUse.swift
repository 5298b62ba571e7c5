#if canImport(AVFoundation) && !os(watchOS)
import Spool
import Synchronization

/// The use of a server by one player. When its last use ends in the background, the server is suspended, which closes
/// its sockets.
///
/// Several players may share a server, so the active uses of each server in this process are counted. Any thread may
/// use this object.
final class ServerUse: Sendable {
    private static let counts = Mutex<[ObjectIdentifier: Int]>([:])

    private let server: any MediaServer
    private let isActive = Mutex(false)

    /// Starts a use of the server, which ends with ``end()`` or when this object is released.
    init(of server: any MediaServer) {
        self.server = server
        start()
    }

    deinit { _ = stop() }

    /// Starts the use again after ``end()``.
    func start() {
        let hasChanged = isActive.withLock { isActive in
            defer { isActive = true }
            return !isActive
        }
        if hasChanged { Self.counts.withLock { $0[ObjectIdentifier(server), default: 0] += 1 } }
    }

    /// Ends the use, and suspends the server if it was the last one.
    func end() {
        if stop() { server.suspend() }
    }

    /// Ends the use. Returns whether it was the last one.
    private func stop() -> Bool {
        let hasChanged = isActive.withLock { isActive in
            defer { isActive = false }
            return isActive
        }
        guard hasChanged else { return false }
        return Self.counts.withLock { counts in
            let count = counts[ObjectIdentifier(server), default: 1] - 1
            counts[ObjectIdentifier(server)] = count > 0 ? count : nil
            return count <= 0
        }
    }
}
#endif

import Synchronization

/// How far one observer has come in the states of a set.
final class DownloadCourse: Sendable {
    private let name: String
    private let downloads: Downloads
    private let seen = Mutex<UInt64?>(nil)

    init(of name: String, in downloads: Downloads) {
        self.name = name
        self.downloads = downloads
    }

    /// The next state; nil at the end.
    func next() async -> DownloadSet? {
        let changes = downloads.work.changes
        if let version = seen.withLock({ $0 }), !(await changes.wait(beyond: version)) { return nil }
        let version = changes.version
        seen.withLock { $0 = version }
        // It throws where the cache is closed, or the catalog can't be read: there is nothing to show any more.
        return try? await downloads.set(name)
    }
}

extension Store {
    /// Notes in the lock file how other processes may ask this one; nil: not at all.
    package func announce(_ text: String?) async throws {
        try await executor.run { [directory] in try directory.announce(text) }
    }

    /// What the process that has a cache directory has noted so; nil if nothing. Blocks.
    package static func announcement(path: String) -> String? {
        CacheDirectory.announcement(path: path, fileSystem: SystemFileSystem())
    }
}

import Foundation
import SpoolTesting
import Testing

@testable import Spool

// Functions that give the cases access to internal parts of the engine.

/// Opens a cache in `directory`, with the file system and the clock of a test.
func makeCache(
    directory: String, upstream: any Upstream, configuration: MediaCache.Configuration, fileSystem: any FileSystem,
    clock: CacheClock
) async throws -> MediaCache {
    try await MediaCache.opened(
        directory: URL(fileURLWithPath: directory), upstream: upstream, configuration: configuration,
        fileSystem: fileSystem, clock: clock)
}

/// Returns the paths of all media files in a cache directory, whether or not they are in the catalog.
func mediaFiles(in directory: String) -> [String] {
    let folder = directory + "/media"
    return FolderTree.paths(under: folder).filter { $0.hasSuffix(".media") }.map { folder + "/" + $0 }
}

extension MediaCache {
    /// Checks that the counted bytes, the catalog and the files agree. Call it while the cache is idle.
    func checkLedger() async throws {
        let store = try await store
        // Work that a timer started may still be in progress. A difference that remains after a few attempts is a
        // fault.
        for _ in 0..<4 {
            try await store.flush()
            await store.waitUntilIdle()
            if (try? await store.checkLedger()) != nil { return }  // The error is thrown below.
        }
        try await store.checkLedger()
    }
}

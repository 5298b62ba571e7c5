import Foundation
import SpoolTesting
import Testing

@testable import Spool

// What the cases need of the engine's inside, in one place.

/// A cache in `directory`, on a disk and a time of the test's.
func makeCache(
    directory: String, upstream: any Upstream, configuration: MediaCache.Configuration, fileSystem: any FileSystem,
    clock: CacheClock
) async throws -> MediaCache {
    try await MediaCache.opened(
        directory: URL(fileURLWithPath: directory), upstream: upstream, configuration: configuration,
        fileSystem: fileSystem, clock: clock)
}

/// The paths of all media files in a cache directory, whether or not the catalog knows them.
func mediaFiles(in directory: String) -> [String] {
    let folder = directory + "/media"
    return FolderTree.paths(under: folder).filter { $0.hasSuffix(".media") }.map { folder + "/" + $0 }
}

extension MediaCache {
    /// Checks that the bytes counted, the catalog's and those on disk are the same; to be called at rest.
    func checkLedger() async throws {
        let store = try await store
        // What a timer has begun meanwhile is waited for; what does not add up at rest never does.
        for _ in 0..<4 {
            try await store.flush()
            await store.waitUntilIdle()
            if (try? await store.checkLedger()) != nil { return }  // Else it says so below.
        }
        try await store.checkLedger()
    }
}

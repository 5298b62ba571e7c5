import Foundation
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolStorage

/// Backup exclusion and data protection of a cache's directory, with a recorder instead of the platform's attributes.
@Suite("Directory protection", .timeLimit(.minutes(10)))
struct DirectoryProtectionTests {
    private let scratch: ScratchDirectory
    private let recorder = ProtectionRecorder()

    init() throws { scratch = try ScratchDirectory() }

    private var path: String { scratch.file("Application Support/Media") }

    private func open() async throws -> Store {
        try await Store.open(
            path: path, configuration: Store.Configuration(),
            fileSystem: SystemFileSystem(protection: recorder.protection),
            clock: CacheClock(clock: ManualClock()), report: { _ in })
    }

    @Test("E134: opening a cache creates missing parent directories, but protects only the cache's directory")
    func parentMissing() async throws {
        try await open().close()
        #expect(recorder.directories == [path])
        #expect(FileManager.default.fileExists(atPath: path + "/media"))
    }

    @Test("E134: a cache directory that the app created earlier is also protected")
    func directoryExists() async throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        try await open().close()
        #expect(recorder.directories == [path])
    }

    @Test("E134: reopening a store protects its directory again, but not the folders in the directory")
    func openedAgain() async throws {
        for _ in 0..<2 {
            let store = try await open()
            let lease = try store.begin(
                CacheKey("a"), url: "https://example.org/a",
                description: GenerationDescription(length: 1000, contentType: "video/mp4", version: "1"), isKept: true,
                user: nil)
            lease.end()
            try await store.close()
        }
        #expect(recorder.directories == [path, path])
        #expect(recorder.files.allSatisfy { $0.hasPrefix(path + "/") })
        #expect(recorder.files.contains(path + "/lock"))
    }

    @Test("E134: creating a directory does not protect it or its parents")
    func creation() throws {
        let files = SystemFileSystem(protection: recorder.protection)
        try files.createDirectory(path)
        #expect(recorder.directories.isEmpty)
        #expect(files.protectDirectory(path).isEmpty)
        #expect(recorder.directories == [path])
    }

    @Test("E135: if a directory's attributes can't be set, the cache stays writable, and a notice states the cause")
    func rejectedAttributes() async throws {
        // If a write failed with this error, the disk would be treated as read-only.
        let code = POSIXErrorCode.EPERM.rawValue
        recorder.fail(with: .system("could not be excluded from backups", path: path, errno: code))
        let store = try await open()
        // A read-only cache has a different notice, and no catalog.
        #expect(store.notices == ["“\(path)” could not be excluded from backups: operation not permitted"])
        #expect(try await Store.inspect(path: path).isEmpty)
        try await store.close()
    }
}

/// A protection that records the paths and does not set attributes.
private final class ProtectionRecorder: Sendable {
    private struct State {
        var directories: [String] = []
        var files: [String] = []
        var failures: [CacheError] = []
    }

    private let state = Mutex(State())

    var directories: [String] { state.withLock { $0.directories } }
    var files: [String] { state.withLock { $0.files } }

    func fail(with error: CacheError) { state.withLock { $0.failures = [error] } }

    var protection: FileProtection {
        FileProtection(
            protectDirectory: { [self] path in
                state.withLock {
                    $0.directories.append(path)
                    return $0.failures
                }
            },
            protectFile: { [self] _, path in state.withLock { $0.files.append(path) } })
    }
}

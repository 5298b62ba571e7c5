import Foundation
import GRDB
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolStorage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Directories of other accounts, losses of power, damaged catalogs, and failed removals.
@Suite("Store: recovery", .timeLimit(.minutes(10)))
struct StoreRecoveryTests {
    private let fixture: StoreFixture
    private let block = Block.size

    init() throws { fixture = try StoreFixture() }

    // MARK: - Foreign directories

    @Test("E155: a directory that another account creates during the opening is refused, and nothing is put into it")
    func createdByAnother() async throws {
        let path = fixture.path
        fixture.files.decide { call, called in
            if call == .createDirectory, called == path, mkdir(path, 0o777) == 0 { chmod(path, 0o777) }
            return nil
        }
        let error = await #expect(throws: CacheError.self) { try await fixture.open() }
        #expect(error?.code == .storage)
        #expect(error?.message.contains("others than its owner may write") == true)
        #expect(try FileManager.default.contentsOfDirectory(atPath: path).isEmpty)
    }

    @Test("E155: a cache whose folder of media others may write to is refused, also to be read only")
    func foreignMedia() async throws {
        let store = try await fixture.open()
        try await fixture.store("a", length: block, in: store)
        try await store.close()
        #expect(chmod(fixture.path + "/media", 0o777) == 0)
        let error = await #expect(throws: CacheError.self) { try await fixture.open() }
        #expect(error?.message.contains("/media” can't be used as a cache") == true)
        let reading = await #expect(throws: CacheError.self) {
            try await Store.open(
                path: fixture.path, configuration: Store.Configuration(isReadOnly: true),
                clock: CacheClock(clock: fixture.clock), report: { _ in })
        }
        #expect(reading?.message.contains("/media” can't be used as a cache") == true)
        #expect(chmod(fixture.path + "/media", 0o700) == 0)
        try await fixture.open().close()
    }
}

import ByteRanges
import Foundation
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolStorage

/// Random operations by concurrent users on a disk that fails at random, with a final check of the counts.
@Suite("Store under random operations", .timeLimit(.minutes(10)))
struct StoreRandomTests {
    private static let length = 12 * Block.size + 777

    @Test(
        "After random concurrent operations and faults, all stored bytes and all byte counts are correct",
        arguments: 0..<(ProcessInfo.processInfo.environment["SPOOL_STORE_SEEDS"].flatMap(UInt64.init) ?? 16))
    func mixture(seed: UInt64) async throws {
        // A store in memory outlives each session, as files do.
        let fixture = try StoreFixture(byteStore: seed % 5 == 4 ? MemoryByteStore() : nil)
        for session in 0..<3 as Range<UInt64> {
            fixture.files.clearFaults()
            if seed % 3 == 1, session > 0 { try fixture.recordUncleanEnd() }
            var random = SeededGenerator(seed &* 77 &+ session)
            if seed % 4 == 2 { fixture.setKey(1) }
            // Each session has a different key.
            if seed % 4 == 3, session > 0 { try await Self.rekey(fixture, to: session == 1 ? 1 : 2) }
            if seed % 2 == 1 { try Self.damageAtRest(fixture, &random) }
            let store = try await fixture.open(
                capacity: seed % 2 == 0 ? nil : 60 * Block.size,
                eviction: [.standard, .leastRecentlyUsed, .largestFirst][Int(seed % 3)], memoryLimit: 1 << 20,
                openFileLimit: 8)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for worker in 0..<6 as Range<UInt64> {
                    group.addTask {
                        var random = SeededGenerator(seed &* 1000 &+ session &* 100 &+ worker)
                        for _ in 0..<40 { try await Self.step(store, fixture, &random, seed) }
                    }
                }
                try await group.waitForAll()
            }
            fixture.files.clearFaults()
            // Removes damaged or truncated blocks that were not read yet.
            _ = try await store.verify(repairing: true)
            #expect(store.leaseCount == 0)
            do {
                try await store.checkLedger()
            } catch {
                Issue.record("seed \(seed), session \(session): \(error)")
            }
            try await Self.readAll(store, fixture)
            try await store.close()
        }
    }

    private static func rekey(_ fixture: StoreFixture, to next: Int) async throws {
        try await Store.rekey(
            path: fixture.path, from: fixture.currentKey, to: StoreFixture.key(number: next),
            byteStore: fixture.byteStore, fileSystem: fixture.files, clock: CacheClock(clock: fixture.clock))
        fixture.setKey(next)
    }

    /// Runs one random operation. The description of a version names the bytes that it must contain.
    private static func step(
        _ store: Store, _ fixture: StoreFixture, _ random: inout SeededGenerator, _ seed: UInt64
    ) async throws {
        let name = "\(Int.random(in: 0..<10, using: &random))"
        let key = StoreFixture.key(name)
        switch Int.random(in: 0..<40, using: &random) {
        case 0..<14: try await play(name, store, fixture, &random)
        case 14..<18: try await replace(name, store, fixture, &random)
        case 18..<21: _ = try? await store.remove(key)
        case 21..<23: _ = try? await store.evict(to: store.usedBytes * Int64.random(in: 0...9, using: &random) / 10)
        case 23..<25: _ = try? await store.verify(repairing: Bool.random(using: &random))
        case 25..<27: try? await store.export(key, to: URL(fileURLWithPath: fixture.scratch.file("copy-\(name)")))
        case 27: store.recordUse(of: key)
        case 28: store.recordUse(of: key, in: StoreFixture.key("\(Int.random(in: 0..<3, using: &random))"))
        case 29: store.recordStop(.random(in: 1..<length, using: &random), isConsumed: .random(using: &random), of: key)
        case 30..<32: _ = try? await store.setPinned(Bool.random(using: &random), key)
        case 32: try? await store.flush()
        case 33: fixture.calendar.withLock { $0 += Double.random(in: -1e8...1e8, using: &random) }
        case 34: fixture.files.clearFaults()
        case 35 where seed % 4 == 0: try? delete(fixture, &random)
        default:
            let call = FaultyFileSystem.Call.allCases.randomElement(using: &random) ?? .read
            let code = [POSIXErrorCode.EIO, .ENOSPC, .EMFILE].randomElement(using: &random) ?? .EIO
            // Bits of bytes in memory are not flipped, because checks can't detect that.
            let after = Int.random(in: 0..<5, using: &random)
            fixture.files.fail([call], with: .error(code), after: after, times: Int.random(in: 1...3, using: &random))
        }
    }

    /// Deletes a media file, as a user or the system may do at any time.
    private static func delete(_ fixture: StoreFixture, _ random: inout SeededGenerator) throws {
        guard let name = fixture.mediaFiles.randomElement(using: &random) else { return }
        try FileManager.default.removeItem(atPath: fixture.path + "/media/" + name)
    }

    /// Damages media files while the store is closed.
    private static func damageAtRest(_ fixture: StoreFixture, _ random: inout SeededGenerator) throws {
        for name in fixture.mediaFiles where Int.random(in: 0..<3, using: &random) == 0 {
            let path = fixture.path + "/media/" + name
            let size = try SystemFileSystem().openFile(path, .read).size()
            guard size > 0 else { continue }
            if Bool.random(using: &random) {
                try SystemFileSystem().openFile(path, .readWrite).punchHole(size / 2..<Int64.max)
            } else {
                try fixture.damage(path, at: Int64.random(in: 0..<size, using: &random))
            }
        }
    }

    private static func play(
        _ name: String, _ store: Store, _ fixture: StoreFixture, _ random: inout SeededGenerator
    ) async throws {
        let user = TestUser()
        guard let lease = try? await store.lease(StoreFixture.key(name), user: user) else {
            return try await replace(name, store, fixture, &random)
        }
        defer { lease.end() }
        for _ in 0..<Int.random(in: 1..<6, using: &random) {
            try await use(lease.generation, user, fixture, &random)
        }
    }

    private static func replace(
        _ name: String, _ store: Store, _ fixture: StoreFixture, _ random: inout SeededGenerator
    ) async throws {
        let user = TestUser()
        let lease = try fixture.begin(
            name, as: "\(name)-\(random.next())", length: length, in: store,
            isKept: Int.random(in: 0..<8, using: &random) > 0, user: user)
        defer { lease.end() }
        for _ in 0..<Int.random(in: 0..<5, using: &random) {
            try await use(lease.generation, user, fixture, &random)
        }
    }

    private static func use(
        _ generation: Generation, _ user: TestUser, _ fixture: StoreFixture, _ random: inout SeededGenerator
    ) async throws {
        let version = generation.description.version
        let start = Int64.random(in: 0..<length, using: &random)
        user.near.withLock { $0 = start..<start + 100_000 }
        let end = min(length, start + Int64.random(in: 1..<300_000, using: &random))
        if Int.random(in: 0..<3, using: &random) > 0 {
            let from = generation.storingOffset(for: start)
            guard from < end else { return }
            _ = try await fixture.store(
                from..<end, of: version, in: generation, isAwaited: Bool.random(using: &random))
        }
        guard let there = generation.storedPrefix(at: start) else { return }
        let range = start..<min(there.upperBound, end)
        var buffer = [UInt8](repeating: 0, count: range.count)
        if let count = buffer.withUnsafeMutableBytes({ generation.readWithoutBlocking(start, into: $0) }) {
            #expect(
                Array(buffer[..<count]) == StoreFixture.bytes(start..<start + Int64(count), of: version),
                "wrong bytes at once at \(start)")
        }
        do {
            if Int.random(in: 0..<4, using: &random) == 0 {
                let slice = try generation.slice(range)
                await Task.yield()
                var bytes = [UInt8](repeating: 0, count: slice.count)
                let count = try bytes.withUnsafeMutableBytes { try slice.read(into: $0) }
                #expect(Array(bytes[..<count]) == Array(StoreFixture.bytes(slice.range, of: version).prefix(count)))
            } else {
                try fixture.expect(range, of: version, in: generation)
            }
        } catch is MissingBytes {
            // The bytes were evicted or damaged in the meantime, or the read failed. An engine would fetch them again.
        } catch is CacheError {
            // The simulated disk failed.
        }
    }

    private static func readAll(_ store: Store, _ fixture: StoreFixture) async throws {
        for record in try await store.resources() {
            guard let lease = try await store.lease(record.key) else { continue }
            for range in lease.generation.storedRanges {
                try fixture.expect(range, of: lease.generation.description.version, in: lease.generation)
            }
            lease.end()
        }
    }
}

import ByteRanges
import Foundation
import GRDB
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolStorage

@Suite("Store: another key", .timeLimit(.minutes(10)))
struct StoreRekeyTests {
    private let block = Block.size
    private let fixture: StoreFixture
    private let names = ["a", "b", "c"]
    private static let length = 5 * Block.size + 123

    init() throws { fixture = try StoreFixture() }

    private func fill() async throws {
        let store = try await fixture.open()
        for name in names { try await fixture.store(name, length: Self.length, in: store) }
        let half = try fixture.begin("half", length: Self.length, in: store)
        try await fixture.land(0..<block + 50, of: "half", in: half.generation)
        try await fixture.land(3 * block..<3 * block + 10, of: "half", in: half.generation)
        half.end()
        try await store.flush()
        fixture.calendar.withLock { $0 += 10 }
        try await store.downloads.add([
            DownloadRecord(set: "flight", key: StoreFixture.key("d").hash, url: "https://example.org/d", source: nil)
        ])
        _ = try await store.setPinned(true, StoreFixture.key("b"))
        await store.waitUntilIdle()
        try await store.close()
    }

    private func rekey(from former: Int?, to next: Int?) async throws {
        try await Store.beginRekeying(
            path: fixture.path, from: StoreFixture.key(number: former), to: StoreFixture.key(number: next),
            fileSystem: fixture.files, clock: CacheClock(clock: fixture.clock))
        fixture.setKey(next)
    }

    private func expectAll(_ store: Store) async throws {
        for name in names {
            let lease = try #require(try await store.lease(StoreFixture.key(name)))
            #expect(lease.generation.landed == [0..<Self.length])
            try fixture.expect(0..<Self.length, of: name, in: lease.generation)
            lease.end()
        }
        let half = try #require(try await store.lease(StoreFixture.key("half")))
        #expect(half.generation.landed == [0..<block + 50, 3 * block..<3 * block + 10])
        try fixture.expect(0..<block + 50, of: "half", in: half.generation)
        half.end()
        #expect(try await store.downloads.members().map(\.set) == ["flight"])
        #expect(try await store.resource(StoreFixture.key("b"))?.isPinned == true)
    }

    /// All that is stored gets its key now, nothing is lost by it, and nothing of before is left.
    private func expectFinished(_ store: Store) async throws {
        try await store.finishRekeying()
        #expect(try await store.rekeyingLeft().resources == 0)
        try await expectAll(store)
        try await store.checkLedger()
        try await store.close()
        expectSilence()
    }

    @Test(
        "A plain cache becomes an encrypted one, gets another key, and becomes plain: nothing is lost, nothing of before is left",
        arguments: [[nil, 1], [1, 2], [1, nil], [nil, 1, 2, nil]] as [[Int?]])
    func change(keys: [Int?]) async throws {
        fixture.setKey(keys[0])
        try await fill()
        for (former, next) in zip(keys, keys.dropFirst()) {
            let order = try await orderOfUse()
            let files = Set(fixture.mediaFiles)
            try await rekey(from: former, to: next)
            let store = try await fixture.open()
            try await expectAll(store)
            try await store.finishRekeying()
            #expect(try await store.rekeyingLeft().resources == 0)
            try await expectAll(store)
            #expect(try await store.verify(repairing: false).bad == 0)
            try await store.checkLedger()
            try await store.close()
            #expect(files.isDisjoint(with: fixture.mediaFiles))
            let after = try await orderOfUse()
            #expect(after == order)
            fixture.setKey(former)
            await #expect(throws: CacheError.self) { _ = try await fixture.open() }
            fixture.setKey(next)
            if next != nil { expectSilence() }
        }
    }

    private func orderOfUse() async throws -> [String] {
        let resources = try await Store.inspect(path: fixture.path, encryptionKey: fixture.currentKey)
        return resources.sorted { $0.lastUsedAt < $1.lastUsedAt }.map(\.url)
    }

    private func expectSilence() {
        let silence = Silence(
            words: ["example.org", "video/mp4", "flight", StoreFixture.key("a").hash],
            plain: names.map { Data(StoreFixture.bytes(0..<Self.length, of: $0)) })
        #expect(silence.broken(in: fixture.path) == [])
    }

    @Test("What is open while it is sealed anew plays on, and has its turn when it is let go of")
    func inUse() async throws {
        try await fill()
        try await rekey(from: nil, to: 1)
        let store = try await fixture.open()
        let lease = try #require(try await store.lease(StoreFixture.key("a")))
        try await store.finishRekeying()
        let left = try await store.rekeyingLeft().resources
        #expect(left >= 1)
        try fixture.expect(0..<Self.length, of: "a", in: lease.generation)
        lease.end()
        // Somebody else may have been at it.
        repeat { await store.waitUntilIdle() } while try await store.rekeyingLeft().resources > 0
        try await expectAll(store)
        try await store.checkLedger()
        try await store.close()
    }

    @Test("Broken off at any write, it goes on at the next opening, and nothing is lost", arguments: 0..<12)
    func interrupted(after calls: Int) async throws {
        try await fill()
        try await rekey(from: nil, to: 1)
        fixture.files.fail([.write], with: .error(.EIO), after: calls * 3)
        do {
            let store = try await fixture.open()
            try? await store.finishRekeying()
            try? await store.close()
        } catch {}
        fixture.files.heal()
        try fixture.noteUncleanEnd()
        let store = try await fixture.open()
        try await expectAll(store)
        try await expectFinished(store)
    }

    @Test("After a kill another key is given at once: what was not finished is finished first")
    func killedAndGivenAnother() async throws {
        try await fill()
        for (former, next) in [(nil, 1), (1, 2), (2, nil), (nil, 3)] as [(Int?, Int?)] {
            try await rekey(from: former, to: next)
            // Nothing has been sealed anew.
            try fixture.noteUncleanEnd()
        }
        try await expectFinished(try await fixture.open())
    }

    @Test("What is not possible is refused, and the cache stays as it is")
    func refused() async throws {
        let none = await #expect(throws: CacheError.self) { try await rekey(from: nil, to: 1) }
        #expect(none?.code == .notStored && !FileManager.default.fileExists(atPath: fixture.path))
        fixture.setKey(nil)
        try await fill()
        for (former, next, code) in [
            (nil, nil, CacheError.Code.invalidArgument), (1, 2, .keyRefused), (1, nil, .keyRefused),
        ] as [(Int?, Int?, CacheError.Code)] {
            let error = await #expect(throws: CacheError.self) { try await rekey(from: former, to: next) }
            #expect(error?.code == code)
        }
        fixture.setKey(nil)
        let store = try await fixture.open()
        let held = await #expect(throws: CacheError.self) { try await rekey(from: nil, to: 1) }
        #expect(held?.code == .directoryInUse)
        fixture.setKey(nil)
        try await expectAll(store)
        try await store.close()
        try await rekey(from: nil, to: 1)
        for (former, code) in [(nil, CacheError.Code.keyRequired), (2, .keyRefused)] as [(Int?, CacheError.Code)] {
            let error = await #expect(throws: CacheError.self) { try await rekey(from: former, to: 3) }
            #expect(error?.code == code)
        }
        // What is not finished is finished first.
        try await rekey(from: 1, to: 2)
        let again = try await fixture.open()
        try await expectAll(again)
        try await again.close()
    }

    @Test("E95: What can't be opened does not keep the rest from being sealed anew; what is none goes")
    func unopenable() async throws {
        try await fill()
        let plain = Set(fixture.mediaFiles)
        let path = fixture.path + "/media/" + (try #require(plain.sorted().first))
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        try await rekey(from: nil, to: 1)
        let store = try await fixture.open()
        try await store.finishRekeying()
        #expect(try await store.rekeyingLeft().resources == 0)
        await store.waitUntilIdle()
        #expect(Set(fixture.mediaFiles).intersection(plain).count <= 1)
        try await store.close()
    }

    @Test("A disk that refuses one file leaves that one, says how many, and the next time does it")
    func oneRefused() async throws {
        try await fill()
        try await rekey(from: nil, to: 1)
        let store = try await fixture.open()
        await store.waitUntilIdle()
        _ = try? await store.finishRekeying()
        try await store.close()
        try await rekey(from: 1, to: 2)
        fixture.files.fail([.read], with: .error(.EIO), times: 1)
        let again = try await fixture.open()
        _ = try? await again.finishRekeying()
        fixture.files.heal()
        try await again.finishRekeying()
        #expect(try await again.rekeyingLeft().resources == 0)
        try await again.close()
    }

    @Test(
        "Numbers of secrets, and generations without a resource, that somebody has written do not end a rekeying early")
    func damagedNumbers() async throws {
        try await fill()
        func change(_ sql: String) throws {
            try DatabaseQueue(path: fixture.path + "/catalog.sqlite").writeWithoutTransaction { db in
                try db.execute(sql: "PRAGMA foreign_keys = OFF; " + sql)
            }
        }
        for number in [Int64.max, -1] {
            try change("INSERT OR REPLACE INTO setting (name, value) VALUES ('secretNumber', \(number))")
            let error = await #expect(throws: CacheError.self) { try await rekey(from: nil, to: 1) }
            #expect(error?.code == .catalogDamaged)
            fixture.setKey(nil)
        }
        try change(
            "DELETE FROM setting WHERE name = 'secretNumber'; UPDATE generation SET resource = resource + 1000 WHERE id = 2"
        )
        try await rekey(from: nil, to: 1)
        let store = try await fixture.open()
        try await store.finishRekeying()
        #expect(try await store.rekeyingLeft().resources == 0)
        await store.waitUntilIdle()
        try await store.checkLedger()
        try await store.close()
        try await rekey(from: 1, to: nil)
    }
}

import ByteRanges
import Foundation
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolStorage

/// The results of a call to a store while another thread is in the middle of a call.
@Suite("Store: concurrent calls", .timeLimit(.minutes(10)))
struct StoreTurnsTests {
    private let fixture: StoreFixture
    private let key = StoreFixture.key("a")
    private let block = Block.size

    init() throws { fixture = try StoreFixture() }

    /// Makes the first `call` on a media file wait until the returned gate is opened.
    private func hold(_ call: FaultyFileSystem.Call) -> Gate {
        let gate = Gate()
        fixture.files.decide { made, path in
            if made == call, path.hasSuffix(".media") { gate.pass() }
            return nil
        }
        return gate
    }

    @Test("Opening a resource waits until its removal ends, but opening another resource does not wait")
    func opensAfterRemoval() async throws {
        let store = try await fixture.open()
        try await fixture.store("a", length: 2 * block, in: store)
        try await fixture.store("b", length: 2 * block, in: store)
        try await store.flush()
        let gate = hold(.remove)
        defer { gate.open() }
        let removing = Task { [key] in try await store.remove(key) }
        await gate.arrival()
        let isOpened = Flag()
        let opening = Task { [key] in
            let lease = try await store.lease(key)
            isOpened.set()
            return lease != nil
        }
        let other = try #require(try await store.lease(StoreFixture.key("b")))
        other.end()
        while store.turns.waiterCount(key) == 0, !isOpened.isSet { await Task.yield() }
        #expect(!isOpened.isSet)
        gate.open()
        #expect(try await removing.value)
        #expect(try await opening.value == false)
        try await store.checkLedger()
        try await store.close()
    }

    @Test("A version that needs space waits for an eviction in progress instead of failing")
    func roomAfterRoom() async throws {
        let store = try await fixture.open(capacity: 64 * block)
        for (name, count) in [("a", 4), ("pinned", 60)] as [(String, Int64)] {
            try await fixture.store(name, length: count * block, in: store)
            #expect(try await store.setPinned(true, StoreFixture.key(name)))
        }
        // The eviction that frees space in advance finds nothing to evict.
        await store.waitUntilIdle()
        #expect(try await store.setPinned(false, key))
        // The small resource is evicted completely to free one block.
        let gate = hold(.remove)
        defer { gate.open() }
        let (first, second) = (try fixture.begin("b", in: store), try fixture.begin("c", in: store))
        let landing = Task { [fixture, block] in
            try await fixture.store(0..<block, of: "b", in: first.generation, isAwaited: false)
        }
        await gate.arrival()
        let hasStored = Flag()
        let other = Task { [fixture, block] in
            let result = try await fixture.store(0..<block, of: "c", in: second.generation, isAwaited: false)
            hasStored.set()
            return result
        }
        while store.evictor.waiterCount == 0, !hasStored.isSet { await Task.yield() }
        #expect(!hasStored.isSet)
        gate.open()
        #expect(try await landing.value == .stored(0..<block))
        #expect(try await other.value == .stored(0..<block))
        #expect(store.usedBytes == 62 * block)
        for lease in [first, second] { lease.end() }
        try await store.checkLedger()
        try await store.close()
    }

    @Test("If a new version is stored while a resource is being opened, the new version is opened")
    func replacedWhileOpening() async throws {
        var store = try await fixture.open()
        try await fixture.store("a", as: "old", length: 2 * block, in: store)
        try await store.close()
        store = try await fixture.open()
        let new = try fixture.begin("a", as: "new", length: 2 * block, in: store)
        var space = await new.generation.reserveSpace(for: 0..<2 * block, isAwaited: true, isUrgent: { true })
        var reads = 0
        let opened = try store.versions.openStored(key, nil) { hash in
            let record = try store.catalog.resource(key: hash)
            reads += 1
            guard reads == 1 else { return record }
            // This makes the previously read record stale, and closes the new version.
            let result = try StoreFixture.bytes(0..<2 * block, of: "new").withUnsafeBytes { bytes in
                try new.generation.store(bytes, at: 0, in: &space)
            }
            #expect(result == .stored(0..<2 * block))
            new.generation.endWriting(at: 2 * block)
            try store.writer.writeChanges()
            new.end()
            let name = new.generation.identifier
            let closed = store.table.withLock { $0.close(name, since: $0.life(name)?.stamp ?? 0) }
            closed?.disk?.file.close()
            #expect(closed === new.generation)
            return record
        }
        let lease = try #require(opened)
        // The catalog is read once more for each change in the background.
        #expect(reads >= 2 && lease.generation.description.version == "new")
        try fixture.expect(0..<2 * block, of: "new", in: lease.generation)
        lease.end()
        try await store.checkLedger()
        try await store.close()
    }

    @Test("While the removal of a resource is being written, its versions are not leased, recorded or closed")
    func removing() async throws {
        let store = try await fixture.open()
        let lease = try fixture.begin("a", length: 3 * block, in: store)
        try await fixture.store(0..<2 * block, of: "a", in: lease.generation)
        try await store.flush()
        #expect(store.table.withLock { $0.beginRemoval(key, ifUnused: false) })
        try await fixture.store(2 * block..<3 * block, of: "a", in: lease.generation)
        #expect(store.table.withLock { $0.leaseCurrent(key, user: nil) == nil && $0.open(key).isEmpty })
        try await store.flush()
        let record = try #require(try store.catalog.resource(key: key.hash))
        #expect(StoredResourceRecord(record).storedRanges == [0..<2 * block])
        // The removal ends without having been written, so nothing has changed.
        store.remover.finish(store.table.withLock { $0.endRemoval(key, isDone: false, andCandidates: true) })
        #expect(store.table.withLock { $0.open(key).count } == 1)
        try await store.flush()
        #expect(try await store.resources().first?.storedRanges == [0..<3 * block])
        lease.end()
        try await store.flush()
        let stamp = try #require(store.table.withLock { $0.life(lease.generation.identifier)?.stamp })
        #expect(store.table.withLock { $0.beginRemoval(key, ifUnused: true) })
        #expect(store.table.withLock { $0.close(lease.generation.identifier, since: stamp) == nil })
        store.remover.finish(store.table.withLock { $0.endRemoval(key, isDone: false, andCandidates: false) })
        try await store.checkLedger()
        try await store.close()
    }
}

/// A gate that blocks the thread of the first call until it is opened. Later calls pass.
final class Gate: Sendable {
    private let arrived = AsyncStream.makeStream(of: Void.self)
    private let opened = DispatchSemaphore(value: 0)
    private let isPassed = Mutex(false)

    func pass() {
        let isFirst = isPassed.withLock { isPassed in
            defer { isPassed = true }
            return !isPassed
        }
        guard isFirst else { return }
        arrived.continuation.finish()
        opened.wait()
    }

    /// Waits until the first call is blocked.
    func arrival() async { for await _ in arrived.stream {} }

    func open() { opened.signal() }
}

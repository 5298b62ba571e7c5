import ByteRanges
import Foundation
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolStorage

/// Capacity, eviction, memory and open files.
@Suite("Store: space", .timeLimit(.minutes(10)))
struct StoreSpaceTests {
    private let fixture: StoreFixture
    private let key = StoreFixture.key("a")
    private let block = Block.size

    init() throws { fixture = try StoreFixture() }

    @Test("C37: eight concurrent writers that store ten times the capacity never exceed the capacity")
    func neverAbove() async throws {
        let capacity = 20 * block
        let store = try await fixture.open(capacity: capacity)
        let most = Most()
        try await withThrowingTaskGroup(of: Void.self) { [fixture, block] group in
            for worker in 0..<8 {
                group.addTask {
                    for number in 0..<5 {
                        let name = "\(worker)-\(number)"
                        let lease = try fixture.begin(name, length: 5 * block, in: store)
                        for index in 0..<5 as Range<Int64> {
                            try await fixture.store(Block.range(of: index), of: name, in: lease.generation)
                            most.note(store.usedBytes)
                        }
                        try fixture.expect(0..<5 * block, of: name, in: lease.generation)
                        lease.end()
                    }
                }
            }
            try await group.waitForAll()
        }
        try await store.checkLedger()
        #expect(most.value <= capacity)
        #expect(store.usedBytes > capacity / 2)
        try await store.close()
    }

    @Test("The least recently used media is evicted first, from its end; pinned and open media stays")
    func order() async throws {
        let store = try await fixture.open()
        for name in ["old", "pinned", "open", "newer", "newest"] {
            try await fixture.store(name, length: 4 * block, in: store)
            store.recordUse(of: StoreFixture.key(name))
        }
        _ = try await store.setPinned(true, StoreFixture.key("pinned"))
        let open = try #require(try await store.lease(StoreFixture.key("open")))
        try await store.evict(to: 14 * block)
        let left = Dictionary(uniqueKeysWithValues: try await store.resources().map { ($0.url, $0.storedRanges) })
        #expect(left[StoreFixture.url("old")] == nil)
        #expect(left[StoreFixture.url("newer")] == [0..<2 * block])
        #expect(left[StoreFixture.url("newest")] == [0..<4 * block])
        #expect(fixture.events.evictedBytes == 6 * block)
        try await store.evict(to: 0)
        #expect(Set(try await store.resources().map(\.url)) == [StoreFixture.url("pinned"), StoreFixture.url("open")])
        try fixture.expect(0..<4 * block, of: "open", in: open.generation)
        open.end()
        try await store.checkLedger()
        try await store.close()
    }

    @Test(
        "A version that fills the capacity is evicted to make space for its successor, unless it is pinned"
    )
    func replacing() async throws {
        let store = try await fixture.open(capacity: 4 * block)
        try await fixture.store("a", length: 4 * block, in: store)
        try await store.flush()
        _ = try await store.setPinned(true, key)
        let pinned = try fixture.begin("a", as: "second", length: 4 * block, in: store)
        try await fixture.store(0..<block, of: "second", in: pinned.generation)
        #expect(pinned.generation.storedInMemory == [0..<block])
        pinned.end()
        await store.waitUntilIdle()
        _ = try await store.setPinned(false, key)
        let lease = try fixture.begin("a", as: "third", length: 4 * block, in: store)
        try await fixture.store(0..<4 * block, of: "third", in: lease.generation)
        #expect(lease.generation.storedInMemory.isEmpty)
        try fixture.expect(0..<4 * block, of: "third", in: lease.generation)
        #expect(store.usedBytes == 4 * block)
        lease.end()
        try await store.checkLedger()
        try await store.close()
    }

    @Test("A use that is not recorded yet affects the eviction order")
    func orderUnrecorded() async throws {
        let store = try await fixture.open()
        for name in ["a", "b"] { try await fixture.store(name, length: 2 * block, in: store) }
        try await store.flush()
        store.recordUse(of: key)
        try await store.evict(to: 2 * block)
        #expect(try await store.resources().map(\.url) == [StoreFixture.url("a")])
        try await store.close()
    }

    @Test("A file that is still being read through a closed store does not prevent the eviction of other files")
    func tailInUse() async throws {
        let closed = try await fixture.open()
        for name in ["a", "b"] {
            try await fixture.store(name, length: 4 * block, in: closed)
            closed.recordUse(of: StoreFixture.key(name))
        }
        let lease = try #require(try await closed.lease(key))
        let slice = try lease.generation.slice(0..<block)
        try await closed.close()
        let store = try await fixture.open()
        try await store.evict(to: 6 * block)
        let left = Dictionary(uniqueKeysWithValues: try await store.resources().map { ($0.url, $0.storedRanges) })
        #expect(left == [StoreFixture.url("a"): [0..<4 * block], StoreFixture.url("b"): [0..<2 * block]])
        _ = consume slice
        lease.end()
        try await store.checkLedger()
        try await store.close()
    }

    @Test("Bytes of an open resource are evicted, except the bytes that a reader, a slice or a transfer needs")
    func offers() async throws {
        let store = try await fixture.open()
        let (one, two) = (TestUser(), TestUser())
        let lease = try fixture.begin("a", length: 20 * block, in: store, user: one)
        try await fixture.store(0..<10 * block, of: "a", in: lease.generation)
        let other = try #require(try await store.lease(key, user: two))
        #expect(other.generation === lease.generation)
        one.near.withLock { $0 = 0..<block }
        two.near.withLock { $0 = 2 * block..<3 * block }
        let slice = try lease.generation.slice(4 * block + 5..<4 * block + 6)
        try await fixture.store(10 * block..<10 * block + 7, of: "a", in: lease.generation, ending: false)
        try await store.evict(to: 0)
        let left: ByteRangeSet = [
            0..<block, 2 * block..<3 * block, 4 * block..<5 * block, 10 * block..<10 * block + 7,
        ]
        #expect(lease.generation.storedRanges == left)
        #expect(ByteRangeSet(one.state.withLock { $0.kept }).contains(4 * block..<5 * block))
        var bytes = [UInt8](repeating: 0, count: 1)
        #expect(try bytes.withUnsafeMutableBytes { try slice.read(into: $0) } == 1)
        #expect(bytes == StoreFixture.bytes(slice.range, of: "a"))
        lease.generation.endWriting(at: 10 * block + 7)
        for lease in [lease, other] { lease.end() }
        _ = consume slice
        try await store.checkLedger()
        try await store.close()
    }

    @Test("C38: a resource larger than the capacity is stored in a sliding window")
    func window() async throws {
        let store = try await fixture.open(capacity: 4 * block)
        let user = TestUser()
        let lease = try fixture.begin("a", length: 40 * block, in: store, user: user)
        for index in 0..<40 as Range<Int64> {
            user.near.withLock { $0 = Block.range(of: index) }
            let result = try await fixture.store(
                Block.range(of: index), of: "a", in: lease.generation, isAwaited: false)
            #expect(result == .stored(Block.range(of: index)))
            try fixture.expect(Block.range(of: index), of: "a", in: lease.generation)
            #expect(store.usedBytes <= 4 * block)
        }
        #expect(store.usedMemory == 0 && fixture.events.notCached.isEmpty)
        lease.end()
        try await store.checkLedger()
        try await store.close()
    }

    @Test(
        "If no media can be evicted, bytes that a reader waits for are stored in memory, and other bytes are rejected")
    func full() async throws {
        let store = try await fixture.open(capacity: 3 * block)
        try await fixture.store("kept", length: 3 * block, in: store)
        try await store.flush()
        _ = try await store.setPinned(true, StoreFixture.key("kept"))
        let lease = try fixture.begin("a", length: 8 * block, in: store)
        #expect(
            try await fixture.store(0..<block, of: "a", in: lease.generation, isAwaited: false) == .noSpace)
        try await fixture.store(0..<4 * block, of: "a", in: lease.generation)
        #expect(lease.generation.storedInMemory == [0..<4 * block] && fixture.events.notCached.count == 1)
        #expect(fixture.events.notCached.first?.code == .capacityExceeded)
        // As soon as space is free, blocks are stored on disk again.
        _ = try await store.remove(StoreFixture.key("kept"))
        try await fixture.store(4 * block..<6 * block, of: "a", in: lease.generation)
        #expect(store.usedBytes == 2 * block && lease.generation.storedRanges == [0..<6 * block])
        try fixture.expect(0..<6 * block, of: "a", in: lease.generation)
        lease.end()
        try await store.checkLedger()
        try await store.close()
    }

    @Test("A smaller capacity is saved, and immediately causes the eviction of media that the policy chooses")
    func policy() async throws {
        var store = try await fixture.open(eviction: .largestFirst)
        for (name, count) in [("small", 1), ("large", 5), ("middle", 3)] as [(String, Int64)] {
            try await fixture.store(name, length: count * block, in: store)
        }
        try await store.setCapacity(.bytes(4 * block), isRemembered: true)
        #expect(Set(try await store.resources().map(\.url)) == [StoreFixture.url("small"), StoreFixture.url("middle")])
        await #expect(throws: CacheError.self) { try await store.setCapacity(.bytes(-1)) }
        await #expect(throws: CacheError.self) { try await store.evict(to: .min) }
        try await store.checkLedger()
        try await store.close()
        store = try await fixture.open()
        #expect(store.capacity == 4 * block)
        try await store.setCapacity(.unlimited)
        #expect(store.capacity == nil)
        try await store.close()
    }

    @Test("A block that started on disk and continued in memory stays readable when its part on disk is evicted")
    func splitBlock() async throws {
        let store = try await fixture.open(capacity: 2 * block)
        try await fixture.store("kept", length: 2 * block - 5000, in: store)
        _ = try await store.setPinned(true, StoreFixture.key("kept"))
        let user = TestUser()
        user.near.withLock { $0 = 0..<block }
        let lease = try fixture.begin("a", length: 8 * block, in: store, user: user)
        try await fixture.store(0..<5000, of: "a", in: lease.generation)
        try await fixture.store(5000..<block, of: "a", in: lease.generation)
        #expect(store.usedBytes == 2 * block && lease.generation.storedInMemory == [0..<block])
        user.near.withLock { $0 = 0..<0 }
        try await store.evict(to: 0)
        #expect(store.usedBytes == 2 * block - 5000)
        #expect(lease.generation.storedRanges == [0..<block])
        #expect(user.state.withLock { $0.kept } == [0..<block])
        try fixture.expect(0..<block, of: "a", in: lease.generation)
        lease.end()
        try await store.checkLedger()
        try await store.close()
    }

    @Test(
        "A block stays readable if it is started in memory, received again once the disk has space, and then continued")
    func blockBegunTwice() async throws {
        let store = try await fixture.open(capacity: block)
        try await fixture.store("kept", length: block, in: store)
        _ = try await store.setPinned(true, StoreFixture.key("kept"))
        let user = TestUser()
        user.near.withLock { $0 = 0..<block }
        let lease = try fixture.begin("a", length: 8 * block, in: store, user: user)
        try await fixture.store(0..<400, of: "a", in: lease.generation)
        #expect(lease.generation.storedInMemory == [0..<400])
        _ = try await store.remove(StoreFixture.key("kept"))
        // A response without ranges starts at the first byte again.
        try await fixture.store(0..<15_000, of: "a", in: lease.generation)
        let rest = try await fixture.store(15_000..<40_000, of: "a", in: lease.generation)
        #expect(rest == .stored(15_000..<40_000))
        try fixture.expect(0..<40_000, of: "a", in: lease.generation)
        // When the disk is full again, the rest of the block is stored in memory.
        try await store.setCapacity(.bytes(0))
        try await fixture.store(40_000..<block, of: "a", in: lease.generation)
        try fixture.expect(0..<block, of: "a", in: lease.generation)
        lease.end()
        try await store.checkLedger()
        try await store.close()
    }

    @Test(
        "E58: all resources share one limit on bytes in memory, which only a block that a reader waits for may exceed")
    func memory() async throws {
        let store = try await fixture.open(memoryLimit: 1 << 20)
        let limit = 16 * block
        let users = (0..<3).map { _ in TestUser() }
        var leases: [Lease] = []
        for (number, user) in users.enumerated() {
            leases.append(try fixture.begin("\(number)", length: 99 * block, in: store, isKept: false, user: user))
        }
        for index in 0..<8 as Range<Int64> {
            for (number, lease) in leases.enumerated().prefix(2) {
                try await fixture.store(Block.range(of: index), of: "\(number)", in: lease.generation)
            }
        }
        #expect(store.usedMemory == limit)
        let third = leases[2].generation
        #expect(try await fixture.store(0..<block, of: "2", in: third, isAwaited: false) == .noSpace)
        // Awaited bytes replace the bytes that other readers have passed.
        users[0].near.withLock { $0 = 6 * block..<8 * block }
        users[1].near.withLock { $0 = 0..<99 * block }
        try await fixture.store(0..<4 * block, of: "2", in: third)
        #expect(store.usedMemory <= limit && third.storedRanges == [0..<4 * block])
        try fixture.expect(0..<4 * block, of: "2", in: third)
        #expect(leases[1].generation.storedRanges == [0..<8 * block])
        // If all bytes are needed, one block exceeds the limit.
        for user in users { user.near.withLock { $0 = 0..<99 * block } }
        let before = store.usedMemory
        for index in 4..<9 as Range<Int64> {
            try await fixture.store(Block.range(of: index), of: "2", in: third)
            users[2].near.withLock { $0 = Block.range(of: index) }
        }
        #expect(store.usedMemory <= max(before, limit) + block)
        try fixture.expect(8 * block..<9 * block, of: "2", in: third)
        for lease in leases { lease.end() }
        try await store.checkLedger()
        #expect(store.usedMemory == 0)
        try await store.close()
    }

    @Test("The memory of a version is released with the last lease, even if a transfer has not ended")
    func memoryOfUnendedTransfer() async throws {
        let store = try await fixture.open()
        let lease = try fixture.begin("a", in: store, isKept: false)
        try await fixture.store(0..<block + 1000, of: "a", in: lease.generation, ending: false)
        #expect(store.usedMemory == 2 * block)
        lease.end()
        await store.waitUntilIdle()
        #expect(store.usedMemory == 0)
        try await store.checkLedger()
        try await store.close()
    }

    @Test("E58: the number of open files is limited, and a closed file is opened again when it is read")
    func openFiles() async throws {
        let store = try await fixture.open(openFileLimit: 8)
        var leases: [Lease] = []
        for number in 0..<60 {
            let lease = try fixture.begin("\(number)", length: 2 * block, in: store)
            try await fixture.store(0..<block, of: "\(number)", in: lease.generation)
            leases.append(lease)
            #expect(store.openFileCount <= 8)
        }
        for (number, lease) in leases.enumerated() {
            try fixture.expect(0..<block, of: "\(number)", in: lease.generation)
            try await fixture.store(block..<2 * block, of: "\(number)", in: lease.generation)
            #expect(store.openFileCount <= 8)
        }
        // Slices keep their files open.
        let slices = try leases.map { try $0.generation.slice(0..<2 * block) }
        #expect(store.openFileCount == 60)
        for (number, slice) in slices.enumerated() {
            var bytes = [UInt8](repeating: 0, count: slice.count)
            #expect(try bytes.withUnsafeMutableBytes { try slice.read(into: $0) } == slice.count)
            #expect(slice.fileDescriptor != nil && bytes == StoreFixture.bytes(slice.range, of: "\(number)"))
        }
        _ = consume slices
        for lease in leases { lease.end() }
        try await store.checkLedger()
        try await store.close()
        leases = []
        #expect(store.openFileCount == 0)
    }

    @Test("E58: if the system has no free descriptors, unused files are closed, and opening is retried")
    func outOfDescriptors() async throws {
        let store = try await fixture.open()
        for number in 0..<20 { try await fixture.store("\(number)", length: block, in: store) }
        await store.waitUntilIdle()
        let open = store.openFileCount
        #expect(open >= 20)
        let first = try fixture.begin("x", in: store)
        fixture.files.fail([.open], with: .error(.EMFILE), times: 1)
        let lease = try fixture.begin("a", length: block, in: store)
        try await fixture.store(0..<block, of: "a", in: lease.generation)
        #expect(lease.generation.isKept && fixture.events.notCached.isEmpty)
        for lease in [first, lease] { lease.end() }
        try await store.checkLedger()
        try await store.close()
    }

    @Test("Verified bytes and bytes in memory can be read without waiting; other bytes cannot")
    func readWithoutBlocking() async throws {
        let first = try await fixture.open()
        try await fixture.store("a", length: 3 * block, in: first)
        try await first.close()
        let store = try await fixture.open()
        let lease = try #require(try await store.lease(key))
        var buffer = [UInt8](repeating: 0, count: 100_000)
        func readWithoutBlocking(_ offset: Int64, in generation: Generation) -> Int? {
            buffer.withUnsafeMutableBytes { generation.readWithoutBlocking(offset, into: $0) }
        }
        // The bytes are not verified yet.
        #expect(readWithoutBlocking(0, in: lease.generation) == nil)
        try fixture.expect(0..<2 * block, of: "a", in: lease.generation)
        if let count = readWithoutBlocking(10, in: lease.generation) {
            #expect(count == min(buffer.count, Int(2 * block - 10)))
            #expect(Array(buffer[..<count]) == StoreFixture.bytes(10..<10 + Int64(count), of: "a"))
        }
        #expect(readWithoutBlocking(3 * block, in: lease.generation) == nil)
        let memory = try fixture.begin("m", in: store, isKept: false)
        try await fixture.store(0..<1000, of: "m", in: memory.generation)
        #expect(readWithoutBlocking(10, in: memory.generation) == 990)
        #expect(Array(buffer[..<990]) == StoreFixture.bytes(10..<1000, of: "m"))
        memory.generation.evictFromMemory([0..<1000])
        #expect(readWithoutBlocking(10, in: memory.generation) == nil)
        for lease in [lease, memory] { lease.end() }
        try await store.checkLedger()
        try await store.close()
    }

    @Test("Repeated evictions each remove exactly the requested number of bytes from the end of a resource")
    func drain() async throws {
        let store = try await fixture.open()
        try await fixture.store("a", length: 600 * block, in: store)
        while store.usedBytes > 0 {
            let before = store.usedBytes
            try await store.evict(to: max(0, before - 50 * block))
            #expect(store.usedBytes == max(0, before - 50 * block))
            if store.usedBytes > 0 {
                #expect(try await store.resource(key)?.storedRanges == [0..<store.usedBytes])
            }
        }
        try await store.checkLedger()
        try await store.close()
    }

    @Test("D88: an export does not contain bytes that were changed on disk after they were read")
    func changedExport() async throws {
        let store = try await fixture.open()
        try await fixture.store("a", length: 3 * block, in: store)
        let lease = try #require(try await store.lease(key))
        try fixture.expect(0..<3 * block, of: "a", in: lease.generation)
        try fixture.damage(try fixture.filledFile(), at: block + 5)
        var exported: Int64 = 0
        let error = await #expect(throws: CacheError.self) {
            try await store.export(key) { exported += Int64($0.count) }
        }
        #expect(error?.code == .incomplete && exported <= block)
        lease.end()
        try await store.close()
    }

    @Test("D86: a check ends when its task is cancelled")
    func cancelledCheck() async throws {
        let store = try await fixture.open()
        try await fixture.store("a", length: 200 * block, in: store)
        try await store.flush()
        let count = Mutex(0)
        let check = Task {
            try await store.verify(repairing: true) { checked, _ in
                count.withLock { $0 = checked }
                withUnsafeCurrentTask { $0?.cancel() }
            }
        }
        await #expect(throws: CancellationError.self) { try await check.value }
        #expect(count.withLock { $0 } == 64)
        try await store.close()
    }

    @Test("An export replaces a file and retains its mode; invalid targets and resources cause errors")
    func export() async throws {
        let store = try await fixture.open()
        try await fixture.store("a", length: 2 * block + 5, in: store)
        let target = URL(fileURLWithPath: fixture.scratch.file("film.mp4"))
        try Data("former".utf8).write(to: target)
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: target.path)
        try await store.export(key, to: target)
        #expect(Array(try Data(contentsOf: target)) == StoreFixture.bytes(0..<2 * block + 5, of: "a"))
        #expect(try FileManager.default.attributesOfItem(atPath: target.path)[.posixPermissions] as? Int == 0o640)
        await #expect(throws: CacheError.self) {
            try await store.export(key, to: URL(fileURLWithPath: fixture.scratch.path))
        }
        let link = fixture.scratch.file("link")
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: target.path)
        await #expect(throws: CacheError.self) { try await store.export(key, to: URL(fileURLWithPath: link)) }
        let unknown = await #expect(throws: CacheError.self) {
            try await store.export(StoreFixture.key("no"), to: target)
        }
        #expect(unknown?.code == .notStored)
        let part = try fixture.begin("part", length: 5 * block, in: store)
        try await fixture.store(0..<block, of: "part", in: part.generation)
        part.end()
        let error = await #expect(throws: CacheError.self) {
            try await store.export(StoreFixture.key("part"), to: target)
        }
        #expect(error?.code == .incomplete && error?.message.contains((block..<5 * block).inWords) == true)
        #expect(fixture.scratch.names == ["cache", "film.mp4", "link"])
        try await store.checkLedger()
        try await store.close()
    }
}

/// The maximum of observed values.
private final class Most: Sendable {
    private let most = Mutex<Int64>(0)
    var value: Int64 { most.withLock { $0 } }
    func note(_ value: Int64) { most.withLock { $0 = max($0, value) } }
}

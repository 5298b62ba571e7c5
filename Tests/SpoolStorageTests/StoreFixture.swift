import ByteRanges
import Foundation
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolStorage

/// A store on real or faulty files in its own directory, with shorthand functions for the calls that an engine makes.
final class StoreFixture: Sendable {
    let scratch: ScratchDirectory
    let files = FaultyFileSystem()
    let clock = ManualClock()
    /// The date, in seconds since 1970.
    let calendar = Mutex<Double>(1_700_000_000)
    /// Whether the wall clock advances with `clock`.
    let isCalendarRunning = Mutex(false)
    let events = EventLog()
    private let encryptionKey = Mutex<EncryptionKey?>(nil)
    /// The store of the bytes; `nil` for files in the directory.
    let byteStore: (any ByteStore)?

    init(byteStore: (any ByteStore)? = nil) throws {
        self.byteStore = byteStore
        scratch = try ScratchDirectory()
    }

    var path: String { scratch.file("cache") }

    func open(
        capacity: Int64? = nil, eviction: EvictionPolicy = .leastRecentlyUsed, quotas: [EvictionQuota] = [],
        minimumFreeSpace: Int64? = 0, maximumAge: Duration? = nil, memoryLimit: Int64 = 16 << 20,
        openFileLimit: Int = 256, executor: BlockingExecutor = BlockingExecutor(), replacing previous: Store? = nil
    ) async throws -> Store {
        let configuration = Store.Configuration(
            capacity: capacity.map { .bytes($0) } ?? .remembered, eviction: eviction, quotas: quotas,
            minimumFreeSpace: minimumFreeSpace, maximumAge: maximumAge, memoryLimit: memoryLimit,
            openFileLimit: openFileLimit, key: currentKey, byteStore: byteStore)
        return try await Store.open(
            path: path, configuration: configuration, fileSystem: files, executor: executor,
            clock: CacheClock(
                clock: clock,
                now: { [self] in
                    let elapsed = isCalendarRunning.withLock { $0 } ? clock.now.offset / .seconds(1) : 0
                    return Date(timeIntervalSince1970: calendar.withLock { $0 } + elapsed)
                }),
            replacing: previous,
            report: { [events] in events.append($0) })
    }

    /// The key with which stores are opened from now on.
    var currentKey: EncryptionKey? { encryptionKey.withLock { $0 } }
    func setKey(_ number: Int?) { encryptionKey.withLock { $0 = Self.key(number: number) } }
    func setKey(bytes count: Int) {
        encryptionKey.withLock { $0 = EncryptionKey(bytes: Data(repeating: 7, count: count)) }
    }

    static func key(number: Int?) -> EncryptionKey? {
        number.map { EncryptionKey(bytes: Data(repeating: UInt8($0), count: EncryptionKey.byteCount)) }
    }

    static func key(_ name: String) -> CacheKey { CacheKey(name) }
    static func url(_ name: String) -> String { "https://example.org/\(name)" }

    /// Returns the bytes in `range` of the resource and version with this name.
    static func bytes(_ range: Range<Int64>, of name: String) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: range.count)
        let seed = name.utf8.reduce(UInt64(14_695_981_039_346_656_037)) { ($0 ^ UInt64($1)) &* 1_099_511_628_211 }
        let pattern = PatternBytes(seed: seed, length: range.upperBound)
        bytes.withUnsafeMutableBytes { pattern.fill($0, at: range.lowerBound) }
        return bytes
    }

    /// Starts a version of a resource whose bytes are those of `name`.
    func begin(
        _ key: String, as name: String? = nil, length: Int64? = nil, in store: Store, isKept: Bool = true,
        user: (any GenerationUser)? = nil
    ) throws -> Lease {
        try store.begin(
            Self.key(key), url: Self.url(key),
            description: GenerationDescription(length: length, contentType: "video/mp4", version: name ?? key),
            isKept: isKept, user: user)
    }

    /// Stores bytes as a transfer does, until there is no space.
    @discardableResult
    func store(
        _ range: Range<Int64>, of name: String, in generation: Generation, isAwaited: Bool = true,
        isUrgent: Bool = true, ending: Bool = true
    ) async throws -> Generation.StoringResult {
        var position = range.lowerBound
        defer { if ending { generation.endWriting(at: position) } }
        while position < range.upperBound {
            let part = position..<min(range.upperBound, position + 100_000)
            var space = await generation.reserveSpace(
                for: part, isAwaited: isAwaited, isUrgent: { isAwaited && isUrgent })
            let result = try Self.bytes(part, of: name).withUnsafeBytes {
                try generation.store($0, at: position, in: &space)
            }
            guard case .stored(let storedRanges) = result else { return result }
            position = storedRanges.upperBound
        }
        return .stored(range)
    }

    /// Stores a complete resource and releases it.
    func store(_ key: String, as name: String? = nil, length: Int64, in store: Store) async throws {
        let lease = try begin(key, as: name, length: length, in: store)
        #expect(try await self.store(0..<length, of: name ?? key, in: lease.generation) == .stored(0..<length))
        lease.end()
    }

    /// Reads a range piece by piece, and compares it with the expected bytes.
    func expect(
        _ range: Range<Int64>, of name: String, in generation: Generation, _ location: SourceLocation = #_sourceLocation
    ) throws {
        var position = range.lowerBound
        while position < range.upperBound {
            let bytes = try generation.read(position..<range.upperBound)
            let wanted = Self.bytes(position..<position + Int64(bytes.count), of: name)
            #expect(Array(bytes) == wanted, "wrong bytes from \(position) on", sourceLocation: location)
            position += Int64(bytes.count)
        }
    }

    /// The names of media files.
    var mediaFiles: [String] { FolderTree.paths(under: path + "/media").filter { $0.hasSuffix(".media") } }

    /// Returns the path of the only media file that is not empty.
    func filledFile() throws -> String {
        let filled = mediaFiles.map { path + "/media/" + $0 }.filter { path in
            let size = (try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int) ?? 0
            return size > 0
        }
        return try #require(filled.count == 1 ? filled.first : nil)
    }

    /// Changes one byte of a file without the store's knowledge.
    func damage(_ path: String, at offset: Int64) throws {
        let file = try SystemFileSystem().openFile(path, .readWrite)
        var byte: [UInt8] = [0]
        _ = try byte.withUnsafeMutableBytes { try file.read(into: $0, at: offset) }
        byte[0] ^= 0x10
        try byte.withUnsafeBytes { try file.write($0, at: offset) }
    }

    /// Leaves the directory in the state that a killed process leaves behind.
    func recordUncleanEnd() throws {
        try "process 1 (killed)\n".write(toFile: path + "/lock", atomically: false, encoding: .utf8)
    }
}

/// The events that a store reported.
final class EventLog: Sendable {
    private let events = Mutex<[StoreEvent]>([])

    func append(_ event: StoreEvent) { events.withLock { $0.append(event) } }
    var all: [StoreEvent] { events.withLock { $0 } }
    var warnings: [String] { all.compactMap { if case .warning(let text) = $0 { text } else { nil } } }
    var notCached: [CacheError] { all.compactMap { if case .notCached(_, _, let error) = $0 { error } else { nil } } }
    var invalidated: [Range<Int64>] {
        all.compactMap { if case .blocksInvalidated(_, _, let range) = $0 { range } else { nil } }
    }
    var evictedBytes: Int64 {
        all.reduce(0) { if case .evicted(_, _, let bytes) = $1 { $0 + bytes } else { $0 } }
    }
}

/// The part of an engine's scheduler that the store uses. It offers the ranges that a test sets, and records its calls.
final class TestUser: GenerationUser {
    struct State {
        /// The number of times that ranges were requested.
        var asked = 0
        var offered: [Range<Int64>] = []
        var kept: [Range<Int64>] = []
        var invalidated: [Range<Int64>] = []
        var retired = 0
    }

    let state = Mutex(State())
    /// The range near a reader, which is not offered for eviction.
    let near = Mutex<Range<Int64>>(0..<0)

    func offerEvictable(_ count: Int64, within place: ByteRangeSet, of generation: Generation) -> [Range<Int64>] {
        let near = near.withLock { $0 }
        var offers: [Range<Int64>] = []
        var sum: Int64 = 0
        for range in place where sum < count {
            for index in Block.indices(touching: range) where sum < count && !Block.range(of: index).overlaps(near) {
                offers.append(Block.range(of: index))
                sum += Block.size
            }
        }
        state.withLock { state in
            state.asked += 1
            state.offered += offers
        }
        return offers
    }

    func evicted(_ ranges: [Range<Int64>], kept: ByteRangeSet, of generation: Generation) {
        state.withLock { $0.kept += Array(kept) }
    }

    func invalidated(_ ranges: [Range<Int64>], of generation: Generation) {
        state.withLock { $0.invalidated += ranges }
    }

    func isFilling(_ generation: Generation) -> Bool { false }

    func retired(_ generation: Generation) { state.withLock { $0.retired += 1 } }
}

/// A condition that becomes true once.
final class Flag: Sendable {
    private let isUp = Mutex(false)
    var isSet: Bool { isUp.withLock { $0 } }
    func set() { isUp.withLock { $0 = true } }
}

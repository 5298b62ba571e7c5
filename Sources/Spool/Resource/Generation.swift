import ByteRanges
import Foundation
import HTTPRanges
import Synchronization

/// One version of a media file's bytes while it is open: on disk as far as the disk takes them, else in memory.
///
/// A byte is in one of the two places. What is in memory is never sealed or recorded, and is given up as soon as no
/// reader is near it. Calls that touch bytes block; they belong on the blocking executor.
final class Generation: Sendable {
    private struct State {
        var row: Int64?
        var version: ResourceVersion
        var isKept: Bool
        /// Bytes of the cache's capacity that this generation takes.
        var claimed: Int64
        var isAbandoned = false
    }

    let identifier: GenerationIdentifier
    /// Nil if nothing of it may be, or can be, on disk.
    let disk: MediaFile?
    let memory: MediaFile
    private let state: Mutex<State>

    init(
        row: Int64?, identifier: GenerationIdentifier, version: ResourceVersion, disk: MediaFile?, memory: MediaFile
    ) {
        self.identifier = identifier
        self.disk = disk
        self.memory = memory
        self.state = Mutex(State(row: row, version: version, isKept: disk != nil, claimed: disk?.landedByteCount ?? 0))
        if let length = version.length { setLength(length) }
    }

    /// The catalog's row; nil if the catalog holds none, or does not yet.
    var row: Int64? {
        get { state.withLock { $0.row } }
        set { state.withLock { $0.row = newValue } }
    }

    /// Validator, length and type, as far as the origin's responses have told them.
    var version: ResourceVersion {
        get { state.withLock { $0.version } }
        set {
            state.withLock { $0.version = newValue }
            if let length = newValue.length { setLength(length) }
        }
    }

    /// Whether new bytes go to disk.
    var isKept: Bool { state.withLock { $0.isKept } }

    /// From now on new bytes go to memory; what is on disk stays readable.
    ///
    /// - Returns: Whether this is news.
    func stopKeeping() -> Bool {
        state.withLock { state in
            defer { state.isKept = false }
            return state.isKept
        }
    }

    /// Counts reserved bytes of the capacity as this generation's; false if it has been abandoned.
    func claim(_ count: Int64) -> Bool {
        state.withLock { state in
            guard !state.isAbandoned else { return false }
            state.claimed += count
            return true
        }
    }

    /// Bytes are gone from disk, or did not get there; returns how many to give back to the capacity.
    func unclaim(_ count: Int64) -> Int64 {
        state.withLock { state in
            guard !state.isAbandoned else { return 0 }
            let count = min(count, state.claimed)
            state.claimed -= count
            return count
        }
    }

    /// The generation leaves the cache, though readers may still have it open; returns what to give back.
    func abandon() -> Int64 {
        state.withLock { state in
            defer {
                state.claimed = 0
                state.isAbandoned = true
                state.isKept = false
            }
            return state.claimed
        }
    }

    /// All that can be read.
    var landed: ByteRangeSet {
        var landed = memory.landed
        if let disk { landed.formUnion(disk.landed) }
        return landed
    }

    /// Where bytes at `offset` have to go: a block that began in memory ends there.
    func mustLandInMemory(at offset: Int64) -> Bool {
        guard isKept else { return true }
        let start = Block.roundDown(offset)
        return offset > start && memory.prefix(at: start) != nil
    }

    /// Lands bytes in memory, first taking along what of their block is on disk.
    func landInMemory(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws {
        let start = Block.roundDown(offset)
        if start < offset, memory.prefix(at: start) == nil, let disk, disk.contains(start..<offset) {
            try memory.land(try copy(of: start..<offset, from: disk))
        }
        try memory.land(bytes, at: offset)
    }

    /// Up to `range.count` landed bytes from `range.lowerBound` on; fewer where disk and memory meet.
    ///
    /// - Throws: ``BadBlocks`` when stored bytes do not match their seals, `CacheError` when they can't be read.
    func read(_ range: Range<Int64>) throws -> Data {
        for file in [memory, disk] {
            guard let file, let found = file.prefix(at: range.lowerBound) else { continue }
            let part = range.lowerBound..<min(range.upperBound, found.upperBound)
            let count = Int(part.upperBound - part.lowerBound)
            return try ReadBuffers.data(count: count) { try file.read(part, into: $0) }
        }
        throw BadBlocks(range: range)
    }

    private func copy(of range: Range<Int64>, from file: MediaFile) throws -> (Data, Int64) {
        var bytes = Data(count: Int(range.upperBound - range.lowerBound))
        try bytes.withUnsafeMutableBytes { try file.read(range, into: $0) }
        return (bytes, range.lowerBound)
    }

    private func setLength(_ length: Int64) {
        _ = disk?.setLength(length)
        _ = memory.setLength(length)
    }
}

extension MediaFile {
    /// How many bytes of `range` have not landed.
    func missingByteCount(in range: Range<Int64>) -> Int64 {
        range.upperBound - range.lowerBound - map.withLock { $0.landed.intersection(range).byteCount }
    }

    fileprivate func land(_ piece: (bytes: Data, offset: Int64)) throws {
        try piece.bytes.withUnsafeBytes { try land($0, at: piece.offset) }
    }
}

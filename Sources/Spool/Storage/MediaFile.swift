package import ByteRanges
import Synchronization

/// The bytes of one version of a media file, as far as they have come: written where they belong, read back only when
/// proven to be what was received.
///
/// The one place on the road from origin to player where bytes rest. It decides nothing about what to fetch, keeps no
/// record beyond the process (the catalog does, from ``takeSeals(partial:)``) and never waits for bytes to come.
///
/// Every method that touches bytes blocks and belongs on a ``BlockingExecutor``; the questions (``landed``,
/// ``contains(_:)``, …) take a lock for some nanoseconds and may be asked anywhere. All may be called from several
/// threads at once. Reads wait for nobody; landing and dropping take turns with each other, as the kernel would have
/// it anyway for one file, so that no hole is punched into bytes that have just been written.
package final class MediaFile: Sendable {
    /// What landing and dropping share. The lock is held across their file calls, which is what it is for: they call
    /// nothing back.
    struct Writer {
        /// The landed bytes of each block that a transfer is filling: what is sealed is what was received, not what
        /// the disk says later. At most 64 KiB for each transfer in flight.
        var tails: [Int64: [UInt8]] = [:]
    }

    let file: any StoredFile
    let sealer: BlockSealer?
    let map: Mutex<BlockMap>
    let writer = Mutex(Writer())

    /// Opens what is there of a generation.
    ///
    /// - Parameters:
    ///   - file: The file; nil for memory alone, which grows by what lands and shrinks by ``drop(_:)``.
    ///   - sealer: The generation's sealer. Bytes in memory are not sealed.
    ///   - blocks: The catalog's records, by ascending index: taken as claims, checked at first read.
    ///   - length: The whole resource's length, if it is known.
    package init(file: (any StoredFile)?, sealer: BlockSealer, blocks: [BlockRecord] = [], length: Int64? = nil) {
        self.file = file ?? MemoryFile()
        self.sealer = file == nil ? nil : sealer
        var map = BlockMap(claims: file == nil ? [] : blocks)
        // A length that contradicts the records is a damaged catalog's; reads then find the blocks bad.
        if let length { _ = map.setLength(length) }
        self.map = Mutex(map)
    }

    // MARK: - Questions

    /// All bytes that have landed. A copy: prefer the narrower questions where they do.
    package var landed: ByteRangeSet { map.withLock { $0.landed } }

    /// Number of bytes that have landed.
    package var landedByteCount: Int64 { map.withLock { $0.landed.byteCount } }

    /// The whole resource's length, once it is known.
    package var length: Int64? { map.withLock { $0.length } }

    /// Whether the bytes are kept in memory only.
    package var isInMemory: Bool { sealer == nil }

    /// The file's descriptor, for `sendfile` of a ``MediaSlice``; nil in memory.
    package var fileDescriptor: Int32? { file.fileDescriptor }

    /// Whether all of `range` has landed.
    package func contains(_ range: Range<Int64>) -> Bool { map.withLock { $0.landed.contains(range) } }

    /// From `offset` to where the landed bytes around it end; nil if the byte at `offset` has not landed.
    package func prefix(at offset: Int64) -> Range<Int64>? { map.withLock { $0.landed.prefix(at: offset) } }

    /// The first maximal hole in `window`.
    package func firstHole(in window: Range<Int64>) -> Range<Int64>? {
        map.withLock { $0.landed.firstHole(in: window) }
    }

    /// Where a transfer that shall bring the byte at `offset` has to begin: the end of what has landed of its block.
    package func landingOffset(for offset: Int64) -> Int64 {
        map.withLock { map in
            guard offset >= 0, offset < Block.offsetLimit else { return offset }
            return Block.roundDown(offset) + map.landedCount(of: Block.index(of: offset))
        }
    }

    /// Notes the whole resource's length, so that a short last block counts as complete.
    ///
    /// - Returns: False, and nothing changes, if more has landed or another length was known: that would be another
    ///   version of the resource.
    @discardableResult
    package func setLength(_ length: Int64) -> Bool { map.withLock { $0.setLength(length) } }

    // MARK: - Seals

    /// Hands out the records that the catalog does not have yet, each once, oldest first: of one block a later one
    /// replaces the former.
    ///
    /// - Parameter partial: Whether blocks that a transfer is still filling are sealed as they stand, too.
    package func takeSeals(partial: Bool) -> [BlockRecord] {
        if partial, sealer != nil {
            writer.withLock { writer in
                for index in writer.tails.keys.sorted() { sealTail(at: index, &writer) }
            }
        }
        return map.withLock { $0.takeSeals() }
    }

    /// Tells that the transfer which ended at `offset` brings no more: what it left of its last block is sealed, for
    /// the next ``takeSeals(partial:)``, and its buffer given back.
    package func releaseTail(at offset: Int64) {
        guard sealer != nil, offset >= 0 else { return }
        writer.withLock { writer in
            let index = Block.index(of: offset)
            sealTail(at: index, &writer)
            writer.tails[index] = nil
        }
    }

    private func sealTail(at index: Int64, _ writer: inout Writer) {
        guard let sealer, let tail = writer.tails[index], !tail.isEmpty else { return }
        let known = map.withLock { $0.record(of: index) }
        guard Int(known?.length ?? 0) < tail.count else { return }
        // A cipher that refuses leaves the prefix unsealed, which only means that it is fetched again another day.
        guard let record = tail.withUnsafeBytes({ try? sealer.seal($0, index: index) }) else { return }
        map.withLock { map in
            if map.landedCount(of: index) == Int64(record.length) { map.sealPrefix(record) }
        }
    }
}

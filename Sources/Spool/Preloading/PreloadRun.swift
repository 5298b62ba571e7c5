import ByteRanges
import SpoolStorage

/// The preload of one resource. It examines the container if it needs to know which bytes a player needs.
final class PreloadRun {
    /// The number of bytes in a chunk. Chunks are slices, whose bytes stay in their file.
    private static let chunkSize = 1 << 20
    /// The maximum number of versions that are started.
    private static let attempts = 3

    private let media: MediaResource
    /// The maximum number of bytes that the cache can store, or `nil` for no limit.
    private let capacity: Int64?
    /// Checks instead of the capacity, if the bytes must stay stored.
    private let keeping: PreloadKeeping?
    /// Receives the numbers of stored and wanted bytes.
    private let note: (_ landed: Int64, _ wanted: Int64?) -> Void
    /// The ranges that were read, of the current version.
    private var brought = ByteRangeSet()

    init(
        media: MediaResource, capacity: Int64?, keeping: PreloadKeeping? = nil,
        note: @escaping (_ landed: Int64, _ wanted: Int64?) -> Void
    ) {
        self.media = media
        self.capacity = capacity
        self.keeping = keeping
        self.note = note
    }

    /// Preloads the bytes. It tries up to three times if the resource changes, or if received bytes are not stored.
    ///
    /// - Throws: The errors of ``MediaReader/next()``. `CacheError` with code `.capacityExceeded` if the cache could
    ///   never store the bytes, or `.incomplete` if received bytes were not stored.
    func run(_ amount: PreloadAmount) async throws {
        for attempt in 1... {
            brought = ByteRangeSet()
            do {
                try await bring(amount)
            } catch let error as CacheError where error.code == .resourceChanged && attempt < Self.attempts {
                continue
            }
            // A reader that was cancelled ends without an error.
            try Task.checkCancellation()
            let count = brought.intersection(try await media.keptRanges()).byteCount
            if count == brought.byteCount {
                if amount == .whole { try await checkWhole() }
                return
            }
            guard attempt >= Self.attempts else { continue }
            throw CacheError(
                .incomplete,
                "\(media.source.displayAddress): \(brought.byteCount.counted("byte")) received, but only \(count.grouped) could be stored",
                key: media.key)
        }
    }

    /// Checks that the whole resource is stored. The origin may have sent fewer bytes than it stated.
    private func checkWhole() async throws {
        guard let stored = try await media.storedResource(), let length = stored.length else { return }
        guard stored.storedByteCount < length, !brought.isEmpty else { return }
        throw CacheError(
            .incomplete,
            "\(media.source.displayAddress): the origin sent \(brought.byteCount.counted("byte")) of \(length.grouped)",
            key: media.key)
    }

    private func bring(_ amount: PreloadAmount) async throws {
        switch amount.kind {
        case .whole: try await bringAll()
        case .bytes(let count): try await bring(ByteRangeSet(0..<count))
        case .start: try await bringStart(seconds: nil)
        case .seconds(let seconds): try await bringStart(seconds: seconds)
        }
    }

    private var length: Int64? { media.resource?.contentInformation(evenStale: true)?.length }

    private func bringAll() async throws {
        var landed: Int64 = 0
        var checked: Int64?
        try await read(.all) { chunk in
            landed += Int64(chunk.count)
            let length = self.length
            if let length {
                if length != checked { try await check(length) }
                checked = length
            } else {
                try await check(received: landed)
            }
            note(landed, length)
        }
        note(landed, landed)
    }

    private func bringStart(seconds: Double?) async throws {
        // The first response states the length.
        var head: [UInt8] = []
        try await read(.bytes(0..<4096)) { chunk in chunk.withUnsafeBytes { head.append(contentsOf: $0) } }
        let isSeekable = media.resource?.supportsByteRanges ?? true
        var search = StartRanges(length: length, seconds: seconds, isSeekable: isSeekable)
        while true {
            switch search.next() {
            case .found(let plan): return try await bring(plan.ranges)
            case .read(let look, let within):
                try Task.checkCancellation()
                if look.upperBound <= Int64(head.count) {
                    search.take(head[Int(look.lowerBound)..<Int(look.upperBound)])
                    continue
                }
                var bytes: [UInt8] = []
                try await read(.bytes(look.lowerBound..<within.upperBound)) { chunk in
                    let wanted = look.count - bytes.count
                    if wanted > 0 { chunk.withUnsafeBytes { bytes.append(contentsOf: $0.prefix(wanted)) } }
                }
                search.take(bytes)
            }
        }
    }

    /// Preloads these ranges, up to the end of the resource.
    private func bring(_ ranges: ByteRangeSet) async throws {
        func wanted() -> Int64 {
            length.map { ranges.intersection(0..<max($0, 0)).byteCount } ?? ranges.byteCount
        }
        var landed: Int64 = 0
        for range in ranges {
            try await read(.bytes(range)) { chunk in
                landed += Int64(chunk.count)
                try await check(wanted())
                note(landed, wanted())
            }
        }
        // Without a length, the received bytes are all bytes.
        note(landed, length == nil ? landed : wanted())
    }

    /// Checks the number of received bytes of a body whose length is unknown, which may have no end, against the same
    /// limit.
    private func check(received count: Int64) async throws {
        if let keeping { return try await keeping.makeSure(count, false) }
        guard let capacity, count > capacity else { return }
        throw CacheError(
            .capacityExceeded,
            "\(media.source.displayAddress): \(count.counted("byte")) received of a body of unknown length, more than the "
                + "capacity of \(capacity.grouped)",
            key: media.key)
    }

    private func check(_ wanted: Int64) async throws {
        if let keeping { return try await keeping.makeSure(wanted, true) }
        guard let capacity, wanted > capacity else { return }
        throw CacheError(
            .capacityExceeded,
            "\(media.source.displayAddress): the preload needs \(wanted.grouped) bytes, but the capacity is \(capacity.grouped)",
            key: media.key)
    }

    /// Reads a range. It reads nothing if the range starts at or after the end.
    private func read(_ range: MediaRange, _ take: (MediaChunk) async throws -> Void) async throws {
        let reader = media.preloadReader(range, chunkSize: Self.chunkSize, handsOutSlices: true)
        do {
            while let chunk = try await reader.next() {
                brought.insert(chunk.range)
                try await take(chunk)
            }
        } catch let error as CacheError where error.code == .unsatisfiableRange {
            // Only an empty resource has no first byte.
            if brought.isEmpty, media.resource?.knownLength != 0 { throw error }
        }
    }
}

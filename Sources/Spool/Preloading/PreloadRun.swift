import ByteRanges
import SpoolStorage

/// The preload of one resource. It examines the container if the amount depends on the bytes that a player needs.
final class PreloadRun {
    /// The number of bytes in a chunk. Chunks are slices, whose bytes stay in their file.
    private static let chunkSize = 1 << 20
    /// The maximum number of attempts to preload and store the bytes.
    private static let attempts = 3

    private var media: MediaResource
    /// The maximum number of bytes that the cache can store, or `nil` for no limit.
    private let capacity: Int64?
    /// The checks that replace the check of the capacity if the bytes must stay stored.
    private let keeping: PreloadKeeping?
    /// A function that receives the numbers of stored and wanted bytes.
    private let note: (_ stored: Int64, _ wanted: Int64?) -> Void
    /// The ranges of the current version that have been read.
    private var fetchedRanges = ByteRangeSet()

    init(
        media: MediaResource, capacity: Int64?, keeping: PreloadKeeping? = nil,
        note: @escaping (_ stored: Int64, _ wanted: Int64?) -> Void
    ) {
        self.media = media
        self.capacity = capacity
        self.keeping = keeping
        self.note = note
    }

    /// Preloads the bytes. Tries up to three times if the resource changes, or if received bytes are not stored for a
    /// reason that may be temporary.
    ///
    /// - Throws: The errors from ``MediaReader/next()``. If received bytes were not stored, `CacheError` with the code
    ///   for the reason:
    ///   - `.capacityExceeded` if they do not fit
    ///   - the code of the cause, such as `.storage`, if the directory can't be written to
    ///   - `.malformedResponse` if the response is empty or not media
    ///   - `.incomplete` for other reasons
    func run(_ amount: PreloadAmount) async throws {
        for attempt in 1... {
            fetchedRanges = ByteRangeSet()
            do {
                try await fetch(amount)
            } catch let error as CacheError where error.code == .resourceChanged && attempt < Self.attempts {
                continue
            }
            // A reader that was cancelled ends without an error.
            try Task.checkCancellation()
            if fetchedRanges.isEmpty, media.isEmptyByMistake {
                // The response is requested again when the resource is opened again.
                if attempt < Self.attempts {
                    media = media.copy()
                    continue
                }
                throw await media.removeEmptyResponse()
            }
            let (count, total) = (try await media.keptRanges(of: fetchedRanges).byteCount, fetchedRanges.byteCount)
            if count == total {
                if amount == .entire { try await checkWhole() }
                return
            }
            let loss = try await media.loss(ofByteCount: total - count)
            guard attempt >= Self.attempts || loss?.isPermanent == true else { continue }
            note(count, total)
            throw media.lossError(stored: count, of: total, because: loss)
        }
    }

    /// Checks that the whole resource is stored. The origin may have sent fewer bytes than it stated.
    private func checkWhole() async throws {
        guard let stored = try await media.storedResource(), let length = stored.length else { return }
        guard stored.storedByteCount < length, !fetchedRanges.isEmpty else { return }
        throw CacheError(
            .incomplete,
            "\(media.source.redactedURL): the origin sent only \(fetchedRanges.byteCount.grouped) of "
                + length.counted("byte"),
            key: media.key)
    }

    private func fetch(_ amount: PreloadAmount) async throws {
        switch amount.kind {
        case .entire: try await fetchAll()
        case .bytes(let count): try await fetch(ByteRangeSet(0..<count))
        case .startup: try await fetchStart(seconds: nil)
        case .seconds(let seconds): try await fetchStart(seconds: seconds)
        }
    }

    private var length: Int64? { media.resource?.contentInformation(evenStale: true)?.length }

    private func fetchAll() async throws {
        var stored: Int64 = 0
        var checked: Int64?
        try await read(.all) { chunk in
            stored += Int64(chunk.count)
            let length = self.length
            if let length {
                if length != checked { try await check(length) }
                checked = length
            } else {
                try await check(received: stored)
            }
            note(stored, length)
        }
        note(stored, stored)
    }

    private func fetchStart(seconds: Double?) async throws {
        // The first response states the length.
        var head: [UInt8] = []
        try await read(.bytes(0..<4096)) { chunk in chunk.withUnsafeBytes { head.append(contentsOf: $0) } }
        let isSeekable = media.resource?.supportsByteRanges ?? true
        var search = StartRanges(length: length, seconds: seconds, isSeekable: isSeekable)
        while true {
            switch search.next() {
            case .found(let plan): return try await fetch(plan.ranges)
            case .read(let part, let within):
                try Task.checkCancellation()
                if part.upperBound <= Int64(head.count) {
                    search.take(head[Int(part.lowerBound)..<Int(part.upperBound)])
                    continue
                }
                var bytes: [UInt8] = []
                try await read(.bytes(part.lowerBound..<within.upperBound)) { chunk in
                    let wanted = part.count - bytes.count
                    if wanted > 0 { chunk.withUnsafeBytes { bytes.append(contentsOf: $0.prefix(wanted)) } }
                }
                search.take(bytes)
            }
        }
    }

    /// Preloads the bytes of `ranges`, up to the end of the resource.
    private func fetch(_ ranges: ByteRangeSet) async throws {
        func wanted() -> Int64 {
            length.map { ranges.intersection(0..<max($0, 0)).byteCount } ?? ranges.byteCount
        }
        var stored: Int64 = 0
        for range in ranges {
            try await read(.bytes(range)) { chunk in
                stored += Int64(chunk.count)
                try await check(wanted())
                note(stored, wanted())
            }
        }
        // If the length is unknown, the received bytes count as all bytes to preload.
        note(stored, length == nil ? stored : wanted())
    }

    /// Checks that the received bytes of a body of unknown length, which may be endless, do not exceed the limit.
    private func check(received count: Int64) async throws {
        if let keeping { return try await keeping.checkFits(count, false) }
        guard let capacity, count > capacity else { return }
        throw CacheError(
            .capacityExceeded,
            "\(media.source.redactedURL): received \(count.counted("byte")) of a body of unknown length, more than the "
                + "capacity of \(capacity.counted("byte"))",
            key: media.key)
    }

    private func check(_ wanted: Int64) async throws {
        if let keeping { return try await keeping.checkFits(wanted, true) }
        guard let capacity, wanted > capacity else { return }
        throw CacheError(
            .capacityExceeded,
            "\(media.source.redactedURL): the preload needs \(wanted.counted("byte")), but the capacity is "
                + capacity.counted("byte"),
            key: media.key)
    }

    /// Reads a range. If the range starts at or past the end, reads nothing. In this case, throws an error if no bytes
    /// have been read before, unless the resource is empty.
    private func read(_ range: MediaRange, _ take: (MediaChunk) async throws -> Void) async throws {
        try await media.checkStorable(range)
        let reader = media.preloadReader(range, chunkSize: Self.chunkSize, handsOutSlices: true)
        do {
            while let chunk = try await reader.next() {
                fetchedRanges.insert(chunk.range)
                try await take(chunk)
            }
        } catch let error as CacheError where error.code == .unsatisfiableRange {
            // Only an empty resource has no first byte.
            if fetchedRanges.isEmpty, media.resource?.knownLength != 0 { throw error }
        }
    }
}

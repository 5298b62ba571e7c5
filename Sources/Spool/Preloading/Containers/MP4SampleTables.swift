import ByteRanges

/// The tables of one MPEG-4 track that contain the positions of its samples (ISO/IEC 14496-12 §8.6.1, §8.7).
struct MP4SampleTables {
    let bytes: ContainerBytes
    /// The number of time units in a second.
    let scale: Double
    /// The number of time units that are decoded before the first visible sample.
    let skipped: Double
    /// The offsets of the bodies of `stsz`, `stts`, `stsc`, and `stco` or `co64`.
    let sizes: Int64
    let times: Int64
    let chunks: Int64
    let offsets: Int64
    /// Whether the chunk offsets are in `co64`, which has 64-bit offsets.
    let isLarge: Bool

    /// The maximum number of entries to examine. It is enough for several seconds of any media.
    private static let maximumStepCount = 8192

    /// Returns the ranges of the samples in the first seconds, and whether they are complete. If they are not, the
    /// limit was reached.
    func samples(seconds: Double) throws(ContainerBytes.Stop) -> (ranges: [Range<Int64>], isComplete: Bool) {
        let sampleSize = try bytes.size(at: sizes.adding(4), bytes: 4)
        let sampleCount = try bytes.size(at: sizes.adding(8), bytes: 4)
        let chunkCount = try bytes.size(at: offsets.adding(4), bytes: 4)
        let limit = skipped + seconds * scale
        var runs = Runs(bytes: bytes, table: times, entrySize: 8)
        var samplesPerChunk = Runs(bytes: bytes, table: chunks, entrySize: 12)
        var ranges: [Range<Int64>] = []
        var (time, sample, chunk, steps) = (0.0, Int64(0), Int64(0), 0)
        while time < limit, chunk < chunkCount, sample < sampleCount {
            steps += 1
            guard steps < Self.maximumStepCount else { return (ranges, false) }
            let start = try bytes.size(
                at: offsets.adding(8 + chunk * (isLarge ? 8 : 4)), bytes: isLarge ? 8 : 4)
            var left = min(try samplesPerChunk.samples(in: chunk), sampleCount - sample)
            var end = start
            while left > 0, time < limit {
                steps += 1
                guard steps < Self.maximumStepCount else { return (ranges + [Range(from: start, to: end)], false) }
                let (count, delta) = try runs.next(upTo: sampleSize > 0 ? left : 1, until: limit - time)
                end = end.adding(
                    sampleSize > 0
                        ? sampleSize.multipliedReportingOverflow(by: count).partialValue
                        : try bytes.size(at: sizes.adding(12 + sample * 4), bytes: 4))
                time += delta * Double(count)
                sample += count
                left -= count
            }
            let range = Range(from: start, to: end)
            if !range.isEmpty { ranges.append(range) }
            chunk += 1
        }
        return (ranges, true)
    }

    /// A table of runs: the durations of samples, or the number of samples in chunks.
    private struct Runs {
        let bytes: ContainerBytes
        let table: Int64
        let entrySize: Int64
        private var entry: Int64 = 0
        private var used: Int64 = 0

        init(bytes: ContainerBytes, table: Int64, entrySize: Int64) {
            self.bytes = bytes
            self.table = table
            self.entrySize = entrySize
        }

        private func count() throws(ContainerBytes.Stop) -> Int64 { try bytes.size(at: table.adding(4), bytes: 4) }

        private func field(_ number: Int64, of entry: Int64) throws(ContainerBytes.Stop) -> Int64 {
            try bytes.size(at: table.adding(8 + entry * entrySize + number * 4), bytes: 4)
        }

        /// Returns the next samples with the same duration: their number, at least one, and the duration of each.
        mutating func next(
            upTo most: Int64, until time: Double
        ) throws(ContainerBytes.Stop) -> (count: Int64, delta: Double) {
            guard entry < (try count()) else { throw .malformed }
            let delta = Double(try field(1, of: entry))
            let left = try field(0, of: entry) - used
            let enough = delta > 0 ? Int64(saturating: min(max(time / delta, 0), 1e15).rounded(.up)) : most
            let taken = max(1, min(most, left, enough))
            used += taken
            if taken >= left { (entry, used) = (entry + 1, 0) }
            return (taken, delta)
        }

        /// Returns the number of samples in a chunk. This method must be called for chunks in order.
        mutating func samples(in chunk: Int64) throws(ContainerBytes.Stop) -> Int64 {
            let count = try count()
            guard count > 0 else { throw .malformed }
            // Chunks are counted from 1.
            if entry + 1 < count, try field(0, of: entry + 1) <= chunk + 1 { entry += 1 }
            return try field(1, of: entry)
        }
    }
}

import ByteRanges

/// A parser that finds the bytes a player needs in MPEG-4 and QuickTime files (ISO/IEC 14496-12).
///
/// These bytes are `moov` at any position, small boxes such as `ftyp`, the headers of all other boxes, and the first
/// samples of each track. For a fragmented file, they are `sidx` and the first fragments.
struct MP4Parser {
    /// A box: its name, and the range of its body.
    struct Box {
        var name: FourCharacterCode
        var start: Int64
        var body: Int64
        var end: Int64
        var range: Range<Int64> { Range(from: start, to: end) }
    }

    /// The contents of the `moov` box.
    struct Movie {
        /// The duration in seconds.
        var duration: Double?
        var isFragmented = false
        var trackCount = 0
        /// The ranges of the samples in the first seconds.
        var samples: [Range<Int64>] = []
        /// Whether ``samples`` contains all requested samples.
        var isComplete = true
    }

    /// A limit that is higher than the number of adjacent boxes in real files.
    static let maximumBoxCount = 256
    /// The maximum size of a box other than `moov` that a player waits for.
    private static let maximumBoxSize: Int64 = 4 << 20

    let bytes: ContainerBytes
    let seconds: Double

    init(_ bytes: ContainerBytes, seconds: Double) {
        self.bytes = bytes
        self.seconds = seconds
    }

    /// Adds the ranges that a player needs to start playback to the plan.
    func parse(_ plan: inout StartPlan) throws(ContainerBytes.Stop) {
        var movie: Movie?
        var index: Box?
        var media: [Box] = []
        var offset: Int64 = 0
        for _ in 0..<Self.maximumBoxCount {
            guard let box = try box(at: offset, before: nil) else { break }
            plan.need(box.start..<box.body)
            switch box.name {
            case "moov":
                plan.need(box.range)
                if movie == nil { movie = try self.movie(in: box) }
            case "sidx":
                plan.need(box.range)
                index = index ?? box
            case "mdat", "free", "skip", "wide", "uuid": if box.name == "mdat" { media.append(box) }
            case "moof":
                if let movie { return try fragments(from: box, index, movie, &plan) }
            default: if box.end - box.start <= Self.maximumBoxSize { plan.need(box.range) }
            }
            offset = box.end
        }
        guard let movie else { throw .malformed }
        let length = bytes.length ?? .max
        let size = media.reduce(Int64(0)) { $0.adding(min($1.end, length) - $1.body) }
        if let duration = movie.duration, size < .max / 2 { plan.learn(size, take: duration) }
        for range in movie.samples { plan.need(range) }
        let first = movie.samples.map(\.lowerBound).min() ?? media.first?.body
        if !movie.isComplete || movie.samples.isEmpty, let first { plan.needMedia(from: first) }
    }

    /// Adds the fragments of the first seconds, and the table of all fragments at the end.
    private func fragments(
        from first: Box, _ index: Box?, _ movie: Movie, _ plan: inout StartPlan
    ) throws(ContainerBytes.Stop) {
        plan.format = .fragmentedMP4
        if let index {
            try MP4SegmentIndex(bytes: bytes, box: index).needMedia(seconds: seconds, &plan)
        } else {
            try needFragments(from: first, of: movie, &plan)
            if let duration = movie.duration, let length = bytes.length {
                plan.learn(length - first.start, take: duration)
                plan.needMedia(from: first.start)
            }
        }
        // `mfro` ends the file, and contains the size of the table (§8.8.11).
        guard let length = bytes.length, length > 16 else { return }
        plan.need(length - 16..<length)
        guard try bytes.code(at: length - 12) == "mfro" else { return }
        let size = try bytes.size(at: length - 4, bytes: 4)
        if size <= Self.maximumBoxSize { plan.need(max(0, length - size)..<length) }
    }

    /// Adds the first fragment of each track.
    private func needFragments(
        from first: Box, of movie: Movie, _ plan: inout StartPlan
    ) throws(ContainerBytes.Stop) {
        plan.need(first.range)
        var missing = movie.trackCount - (try children(of: first)).count { $0.name == "traf" }
        var offset = first.end
        for _ in 0..<32 {
            guard let box = try box(at: offset, before: nil) else { break }
            if box.name == "moof" {
                guard missing > 0 else { break }
                missing -= 1
            }
            plan.need(box.range)
            offset = box.end
        }
    }

    // MARK: - The movie

    private func movie(in moov: Box) throws(ContainerBytes.Stop) -> Movie {
        var movie = Movie()
        var samples: [[Range<Int64>]] = []
        for box in try children(of: moov) {
            switch box.name {
            case "mvhd":
                let (scale, duration) = try time(in: box)
                if duration > 0 { movie.duration = duration / scale }
            case "mvex":
                movie.isFragmented = true
                for child in try children(of: box) where child.name == "mehd" {
                    let isLarge = try bytes.number(at: child.body, bytes: 1) == 1
                    let duration = try bytes.number(at: child.body.adding(4), bytes: isLarge ? 8 : 4)
                    // The unit is the timescale of the whole movie, which was parsed before.
                    if let mvhd = try children(of: moov).first(where: { $0.name == "mvhd" }), duration > 0 {
                        movie.duration = Double(duration) / (try time(in: mvhd)).scale
                    }
                }
            case "trak":
                movie.trackCount += 1
                guard let track = try track(in: box) else { continue }
                let (found, isComplete) = try track.samples(seconds: seconds)
                samples.append(found)
                movie.isComplete = movie.isComplete && isComplete
            default: break
            }
        }
        movie.samples = samples.flatMap { $0 }
        return movie
    }

    /// Returns the sample tables of an audio or video track; `nil` for any other track.
    private func track(in trak: Box) throws(ContainerBytes.Stop) -> MP4SampleTables? {
        var skipped = 0.0
        var scale = 0.0
        var tables: [FourCharacterCode: Box] = [:]
        for box in try children(of: trak) {
            if box.name == "edts", let list = try children(of: box).first(where: { $0.name == "elst" }) {
                skipped = try firstMediaTime(in: list)
            }
            guard box.name == "mdia" else { continue }
            for box in try children(of: box) {
                switch box.name {
                case "mdhd": scale = try time(in: box).scale
                case "hdlr":
                    let kind = try bytes.code(at: box.body.adding(8))
                    guard kind == "vide" || kind == "soun" else { return nil }
                case "minf":
                    guard let table = try children(of: box).first(where: { $0.name == "stbl" }) else { return nil }
                    for box in try children(of: table) { tables[box.name] = box }
                default: break
                }
            }
        }
        guard scale > 0, let sizes = tables["stsz"], let runs = tables["stts"], let chunks = tables["stsc"],
            let offsets = tables["stco"] ?? tables["co64"]
        else { return nil }
        return MP4SampleTables(
            bytes: bytes, scale: scale, skipped: skipped, sizes: sizes.body, times: runs.body, chunks: chunks.body,
            offsets: offsets.body, isLarge: tables["stco"] == nil)
    }

    /// Returns the units per second, and the duration in units, from an `mvhd` or `mdhd` box.
    private func time(in box: Box) throws(ContainerBytes.Stop) -> (scale: Double, duration: Double) {
        let isLarge = try bytes.number(at: box.body, bytes: 1) == 1
        let scale = try bytes.number(at: box.body.adding(isLarge ? 20 : 12), bytes: 4)
        let duration = try bytes.number(at: box.body.adding(isLarge ? 24 : 16), bytes: isLarge ? 8 : 4)
        return (Double(scale), duration == (isLarge ? .max : 0xFFFF_FFFF) ? 0 : Double(duration))
    }

    /// Returns the media time, in units of the timescale, at which an edit list starts. Earlier media is decoded, too.
    private func firstMediaTime(in list: Box) throws(ContainerBytes.Stop) -> Double {
        let isLarge = try bytes.number(at: list.body, bytes: 1) == 1
        let count = try bytes.number(at: list.body.adding(4), bytes: 4)
        for entry in 0..<Int64(min(count, 4)) {
            let start = list.body.adding(8 + entry * (isLarge ? 20 : 12) + (isLarge ? 8 : 4))
            let time = try bytes.number(at: start, bytes: isLarge ? 8 : 4)
            // −1 marks an empty edit.
            if time != (isLarge ? .max : 0xFFFF_FFFF) { return Double(time) }
        }
        return 0
    }

    // MARK: - Boxes

    private func children(of parent: Box) throws(ContainerBytes.Stop) -> [Box] {
        var children: [Box] = []
        var offset = parent.body
        while children.count < Self.maximumBoxCount, let box = try box(at: offset, before: parent.end) {
            children.append(box)
            offset = box.end
        }
        return children
    }

    /// Returns the box at an offset; `nil` at the end of its parent, or of the file.
    private func box(at offset: Int64, before end: Int64?) throws(ContainerBytes.Stop) -> Box? {
        if offset.adding(8) > end ?? bytes.length ?? .max { return nil }
        var size = try bytes.size(at: offset, bytes: 4)
        let name = try bytes.code(at: offset.adding(4))
        var head: Int64 = 8
        if size == 1 {
            size = try bytes.size(at: offset.adding(8), bytes: 8)
            head = 16
        }
        // 0 means that the box extends to the end of its parent.
        if size == 0 { size = .max }
        guard size >= head else { throw .malformed }
        // The last box may be truncated.
        let limit = end ?? bytes.length ?? .max
        return Box(name: name, start: offset, body: offset.adding(head), end: min(offset.adding(size), limit))
    }
}

/// The index of a fragmented file, with the sizes and durations of its fragments: `sidx` (ISO/IEC 14496-12 §8.16.3).
private struct MP4SegmentIndex {
    let bytes: ContainerBytes
    let box: MP4Parser.Box

    /// The maximum number of examined entries.
    private static let maximumEntryCount: Int64 = 4096

    /// Adds the fragments of the first seconds, at least one, and the average rate of all fragments.
    func needMedia(seconds: Double, _ plan: inout StartPlan) throws(ContainerBytes.Stop) {
        let isLarge = try bytes.number(at: box.body, bytes: 1) == 1
        let scale = Double(try bytes.number(at: box.body.adding(8), bytes: 4))
        let times = box.body.adding(12)
        let first = try bytes.size(at: times.adding(isLarge ? 8 : 4), bytes: isLarge ? 8 : 4)
        let table = times.adding(isLarge ? 16 : 8)
        let count = try bytes.size(at: table.adding(2), bytes: 2)
        var (size, time, needed) = (Int64(0), 0.0, Int64(0))
        for entry in 0..<min(count, Self.maximumEntryCount) {
            let start = table.adding(4 + entry * 12)
            if time < seconds { needed += 1 }
            let bytesOfEntry = try bytes.size(at: start, bytes: 4) & 0x7FFF_FFFF
            time += Double(try bytes.number(at: start.adding(4), bytes: 4)) / scale
            size = size.adding(bytesOfEntry)
            // The offsets of fragments are relative to the end of the box.
            if needed == entry + 1 { plan.need(box.end.adding(first)..<box.end.adding(first).adding(size)) }
        }
        plan.learn(size, take: time)
    }
}

/// The table of a fragmented file's fragments, with their sizes and durations: `sidx` (ISO/IEC 14496-12 §8.16.3).
struct MP4SegmentIndex {
    let bytes: ContainerBytes
    let box: MP4Parser.Box

    /// How many entries are looked at.
    private static let mostEntries: Int64 = 4096

    /// Adds the fragments of the first seconds, at least one, and the rate of all.
    func needMedia(seconds: Double, _ plan: inout StartPlan) throws(ContainerBytes.Stop) {
        let isLarge = try bytes.number(at: box.body, bytes: 1) == 1
        let scale = Double(try bytes.number(at: box.body.adding(8), bytes: 4))
        let times = box.body.adding(12)
        let first = try bytes.size(at: times.adding(isLarge ? 8 : 4), bytes: isLarge ? 8 : 4)
        let table = times.adding(isLarge ? 16 : 8)
        let count = try bytes.size(at: table.adding(2), bytes: 2)
        var (size, time, needed) = (Int64(0), 0.0, Int64(0))
        for entry in 0..<min(count, Self.mostEntries) {
            let start = table.adding(4 + entry * 12)
            if time < seconds { needed += 1 }
            let bytesOfEntry = try bytes.size(at: start, bytes: 4) & 0x7FFF_FFFF
            time += Double(try bytes.number(at: start.adding(4), bytes: 4)) / scale
            size = size.adding(bytesOfEntry)
            // Their offsets count from the end of the box.
            if needed == entry + 1 { plan.need(box.end.adding(first)..<box.end.adding(first).adding(size)) }
        }
        plan.learn(size, take: time)
    }
}

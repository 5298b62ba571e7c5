/// What a player needs of a Core Audio file (“Apple Core Audio Format Specification 1.0”): every chunk but the samples,
/// also a packet table behind them, and the first seconds.
struct CAFParser {
    /// More chunks than any file has.
    private static let mostChunks = 128
    /// Chunks that are larger are none that a player waits for.
    private static let largestNeeded: Int64 = 16 << 20

    let bytes: ContainerBytes

    /// Adds what a player needs.
    func parse(_ plan: inout StartPlan) throws(ContainerBytes.Stop) {
        var samples: Range<Int64>?
        var sampleRate = Double.nan
        var frames: Double?
        var offset: Int64 = 8
        for _ in 0..<Self.mostChunks {
            if offset.adding(12) > bytes.length ?? .max { break }
            let name = try bytes.code(at: offset)
            let size = try bytes.number(at: offset.adding(4), bytes: 8)
            let body = offset.adding(12)
            // −1: to the end of the file, for the samples alone.
            let count = size == .max ? Int64.max : Int64(clamping: size)
            plan.need(12, at: offset)
            switch name {
            case "desc":
                sampleRate = try bytes.float(at: body, bytes: 8)
                let packetSize = Double(try bytes.number(at: body.adding(16), bytes: 4))
                let framesPerPacket = Double(try bytes.number(at: body.adding(20), bytes: 4))
                // Both are 0 where packets differ in size.
                plan.learn(bytesPerSecond: packetSize * sampleRate / framesPerPacket)
            case "pakt": frames = Double(try bytes.number(at: body.adding(8), bytes: 8))
            case "data": samples = samples ?? body..<body.adding(count)
            default: break
            }
            if name != "data", count <= Self.largestNeeded { plan.need(count, at: body) }
            offset = body.adding(count)
        }
        guard let samples else { throw .malformed }
        if plan.bytesPerSecond == nil, let frames {
            let end = min(samples.upperBound, bytes.length ?? .max)
            plan.learn(end - samples.lowerBound, take: frames / sampleRate)
        }
        plan.needMedia(from: samples.lowerBound, to: samples.upperBound)
    }
}

/// What a player needs of a FLAC file (RFC 9639 §8): the metadata blocks, with the seek table and pictures, and the first
/// seconds.
struct FLACParser {
    /// More blocks than any file has.
    private static let mostBlocks = 128

    let bytes: ContainerBytes

    /// Adds what a player needs, from the four letters `fLaC` on.
    func parse(from start: Int64, _ plan: inout StartPlan) throws(ContainerBytes.Stop) {
        var offset = start.adding(4)
        var duration: Double?
        var isLast = false
        var count = 0
        while !isLast {
            guard count < Self.mostBlocks else { throw .malformed }
            count += 1
            let head = try bytes.number(at: offset, bytes: 4)
            isLast = head >> 31 == 1
            let body = offset.adding(4)
            if head >> 24 & 0x7F == 0 {
                // Sample rate (20 bits), channels (3), bits a sample (5), samples in all (36).
                let facts = try bytes.number(at: body.adding(10), bytes: 8)
                let rate = Double(facts >> 44)
                duration = Double(facts & 0xF_FFFF_FFFF) / rate
                // Until the samples are counted: no more than it would be uncompressed.
                let bits = Double((facts >> 41 & 7) + 1) * Double((facts >> 36 & 31) + 1)
                plan.learn(bytesPerSecond: rate * bits / 8)
            }
            offset = body.adding(Int64(head & 0xFF_FFFF))
            plan.need(0..<offset)
        }
        if let duration, let length = bytes.length { plan.learn(length - offset, take: duration) }
        plan.needMedia(from: offset)
    }
}

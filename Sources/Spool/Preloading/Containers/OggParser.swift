import ByteRanges

/// A parser that finds the bytes a player needs in an Ogg file (RFC 3533).
///
/// These bytes are the pages with the codecs' headers, the first seconds, and the last pages, whose positions determine
/// the duration.
struct OggParser {
    /// The header of one page.
    private struct Page {
        var end: Int64
        /// The position of the end of the page's last packet, in a unit that the codec defines. All bits are set if no
        /// packet ends on this page.
        var position: UInt64
        var stream: UInt64
    }

    /// A limit that is higher than the number of header pages in real files.
    private static let maximumPageCount = 256
    /// The maximum size of a page (RFC 3533 §6).
    private static let largestPage: Int64 = 65_307

    let bytes: ContainerBytes

    /// Adds the needed bytes.
    func parse(_ plan: inout StartPlan) throws(ContainerBytes.Stop) {
        var offset: Int64 = 0
        var rates: [UInt64: Double] = [:]
        var hasMedia = false
        for _ in 0..<Self.maximumPageCount {
            let page = try page(at: offset)
            if rates.count < 8, let rate = try sampleRate(at: offset) { rates[page.stream] = rate }
            offset = page.end
            plan.need(0..<offset)
            hasMedia = page.position != 0 && page.position != .max
            if hasMedia { break }
        }
        guard hasMedia else { throw .malformed }
        if let length = bytes.length {
            let tail = max(0, length - Self.largestPage)..<length
            plan.need(tail)
            if let duration = try duration(in: tail, rates) { plan.learn(length, take: duration) }
        }
        plan.needMedia(from: offset)
    }

    private func page(at offset: Int64) throws(ContainerBytes.Stop) -> Page {
        guard try bytes.has("OggS", at: offset) else { throw .malformed }
        let head = offset.adding(27)
        let count = try bytes.size(at: offset.adding(26), bytes: 1)
        let sizes = count > 0 ? try bytes.bytes(at: head, count: count) : []
        return Page(
            end: head.adding(count).adding(sizes.reduce(0) { $0 + Int64($1) }),
            position: try bytes.number(at: offset.adding(6), bytes: 8, isLittleEndian: true),
            stream: try bytes.number(at: offset.adding(14), bytes: 4, isLittleEndian: true))
    }

    /// Returns the number of position units per second, according to the first page of a stream; `nil` for a codec
    /// without a simple unit.
    private func sampleRate(at offset: Int64) throws(ContainerBytes.Stop) -> Double? {
        guard try bytes.number(at: offset.adding(5), bytes: 1) & 2 != 0 else { return nil }
        let packet = offset.adding(27).adding(try bytes.size(at: offset.adding(26), bytes: 1))
        if try bytes.has("OpusHead", at: packet) { return 48_000 }
        if try bytes.has("vorbis", at: packet.adding(1)) {
            return Double(try bytes.number(at: packet.adding(12), bytes: 4, isLittleEndian: true))
        }
        if try bytes.has("Speex   ", at: packet) {
            return Double(try bytes.number(at: packet.adding(36), bytes: 4, isLittleEndian: true))
        }
        if try bytes.has("FLAC", at: packet.adding(1)) {
            return Double(try bytes.number(at: packet.adding(27), bytes: 4) >> 12)
        }
        return nil
    }

    /// Returns the end of the last page of a stream with a known unit, in seconds.
    private func duration(
        in tail: Range<Int64>, _ rates: [UInt64: Double]
    ) throws(ContainerBytes.Stop) -> Double? {
        guard !rates.isEmpty else { return nil }
        let bytes = Array(try bytes.bytes(at: tail.lowerBound, count: tail.upperBound - tail.lowerBound))
        guard bytes.count >= 27 else { return nil }
        func number(_ start: Int, _ count: Int) -> UInt64 {
            bytes[start..<start + count].reversed().reduce(0) { $0 << 8 | UInt64($1) }
        }
        for start in stride(from: bytes.count - 27, through: 0, by: -1) where bytes[start] == UInt8(ascii: "O") {
            guard bytes[start..<start + 4].elementsEqual("OggS".utf8) else { continue }
            let position = number(start + 6, 8)
            guard position != .max, let rate = rates[number(start + 14, 4)] else { continue }
            return Double(position) / rate
        }
        return nil
    }
}

/// A parser that finds the bytes a player needs in a FLAC file (RFC 9639 §8).
///
/// These bytes are the metadata blocks, with the seek table and images, and the first seconds.
struct FLACParser {
    /// A limit that is higher than the number of blocks in real files.
    private static let maximumBlockCount = 128

    let bytes: ContainerBytes

    /// Adds the needed bytes, starting at the four letters `fLaC`.
    func parse(from start: Int64, _ plan: inout StartPlan) throws(ContainerBytes.Stop) {
        var offset = start.adding(4)
        var duration: Double?
        var isLast = false
        var count = 0
        while !isLast {
            guard count < Self.maximumBlockCount else { throw .malformed }
            count += 1
            let head = try bytes.number(at: offset, bytes: 4)
            isLast = head >> 31 == 1
            let body = offset.adding(4)
            if head >> 24 & 0x7F == 0 {
                // Sample rate (20 bits), channels (3), bits per sample (5), number of samples (36).
                let facts = try bytes.number(at: body.adding(10), bytes: 8)
                let rate = Double(facts >> 44)
                duration = Double(facts & 0xF_FFFF_FFFF) / rate
                // Until the number of samples is known, the uncompressed rate is used as an upper limit.
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

import ByteRanges

/// A parser that finds the bytes a player needs in WAVE (RIFF; EBU Tech 3306 for RF64) and AIFF files.
///
/// These bytes are the samples of the first seconds, and all other chunks up to a maximum size, including those after
/// the samples.
struct ChunkParser {
    /// A named part of the file.
    private struct Chunk {
        var name: FourCharacterCode
        var body: Int64
        var size: Int64
        var end: Int64 { body.adding(size) }
    }

    /// A limit that is higher than the number of chunks in real files.
    private static let maximumChunkCount = 256
    /// The maximum size of a chunk that a player waits for.
    private static let maximumChunkSize: Int64 = 4 << 20
    /// The number of bytes at the start of the samples that players examine to detect DTS.
    private static let examined: Int64 = 200 << 10

    private let bytes: ContainerBytes
    private let isLittleEndian: Bool

    init(_ bytes: ContainerBytes, isLittleEndian: Bool) {
        self.bytes = bytes
        self.isLittleEndian = isLittleEndian
    }

    /// Adds the needed bytes of a WAVE file.
    func parseWave(_ plan: inout StartPlan) throws(ContainerBytes.Stop) {
        var largeSize: Int64?
        var hasSamples = false
        let samples = try parse(&plan, samplesIn: "data") { chunk, plan throws(ContainerBytes.Stop) in
            switch chunk.name {
            case "fmt ": plan.learn(bytesPerSecond: Double(try number(at: chunk.body.adding(8), bytes: 4)))
            case "ds64": largeSize = Int64(clamping: try number(at: chunk.body.adding(8), bytes: 8))
            case "data":
                // A file that is written during a recording does not contain its size.
                if chunk.size == 0xFFFF_FFFF { chunk.size = largeSize ?? .max }
                if chunk.size == 0, !hasSamples { chunk.size = .max }
                hasSamples = true
            default: break
            }
        }
        needSamples(samples, &plan)
    }

    /// Adds the needed bytes of an AIFF or AIFF-C file.
    func parseAIFF(_ plan: inout StartPlan) throws(ContainerBytes.Stop) {
        var duration: Double?
        let samples = try parse(&plan, samplesIn: "SSND") { chunk, _ throws(ContainerBytes.Stop) in
            guard chunk.name == "COMM" else { return }
            let frames = Double(try number(at: chunk.body.adding(2), bytes: 4))
            duration = frames / (try extendedFloat(at: chunk.body.adding(8)))
        }
        if let duration { plan.learn(samples.size, take: duration) }
        needSamples(samples, &plan)
    }

    /// Adds all chunks except those with samples, and returns the first chunk with samples. `learn` may correct the
    /// size of a chunk.
    private func parse(
        _ plan: inout StartPlan, samplesIn name: FourCharacterCode,
        _ learn: (inout Chunk, inout StartPlan) throws(ContainerBytes.Stop) -> Void
    ) throws(ContainerBytes.Stop) -> Chunk {
        var samples: Chunk?
        var offset: Int64 = 12
        for _ in 0..<Self.maximumChunkCount {
            guard var chunk = try chunk(at: offset) else { break }
            plan.need(8, at: offset)
            try learn(&chunk, &plan)
            if chunk.name == name {
                samples = samples ?? chunk
            } else {
                needAll(of: chunk, &plan)
            }
            offset = chunk.end.adding(chunk.size & 1)
        }
        guard let samples else { throw .malformed }
        return samples
    }

    private func needSamples(_ samples: Chunk, _ plan: inout StartPlan) {
        plan.need(min(Self.examined, samples.size), at: samples.body)
        plan.needMedia(from: samples.body, to: samples.end)
    }

    private func needAll(of chunk: Chunk, _ plan: inout StartPlan) {
        if chunk.size <= Self.maximumChunkSize { plan.need(chunk.size, at: chunk.body) }
    }

    /// Returns the chunk at an offset; `nil` at the end of the file.
    private func chunk(at offset: Int64) throws(ContainerBytes.Stop) -> Chunk? {
        if offset.adding(8) > bytes.length ?? .max { return nil }
        let name = try bytes.code(at: offset)
        let size = try number(at: offset.adding(4), bytes: 4)
        return Chunk(name: name, body: offset.adding(8), size: Int64(size))
    }

    private func number(at offset: Int64, bytes count: Int64) throws(ContainerBytes.Stop) -> UInt64 {
        try bytes.number(at: offset, bytes: count, isLittleEndian: isLittleEndian)
    }

    /// Reads an 80-bit number: sign and exponent in 16 bits, then a 64-bit significand with an explicit leading 1.
    private func extendedFloat(at offset: Int64) throws(ContainerBytes.Stop) -> Double {
        let exponent = Int(try bytes.number(at: offset, bytes: 2) & 0x7FFF) - 16_383 - 63
        let fraction = Double(try bytes.number(at: offset.adding(2), bytes: 8))
        return exponent.magnitude > 1000 ? .nan : Double(sign: .plus, exponent: exponent, significand: fraction)
    }
}

/// A parser that finds the bytes a player needs in a Core Audio file.
///
/// Source: “Apple Core Audio Format Specification 1.0”.
///
/// These bytes are the packets of the first seconds, and all other chunks up to a maximum size, including a packet
/// table after the packets.
struct CAFParser {
    /// A limit that is higher than the number of chunks in real files.
    private static let maximumChunkCount = 128
    /// The maximum size of a chunk that a player waits for.
    private static let maximumChunkSize: Int64 = 16 << 20

    let bytes: ContainerBytes

    /// Adds the needed bytes to the plan.
    func parse(_ plan: inout StartPlan) throws(ContainerBytes.Stop) {
        var samples: Range<Int64>?
        var sampleRate = Double.nan
        var frames: Double?
        var offset: Int64 = 8
        for _ in 0..<Self.maximumChunkCount {
            if offset.adding(12) > bytes.length ?? .max { break }
            let name = try bytes.code(at: offset)
            let size = try bytes.number(at: offset.adding(4), bytes: 8)
            let body = offset.adding(12)
            // −1 means that the chunk extends to the end of the file. This value is valid only for the chunk with the
            // samples.
            let count = size == .max ? Int64.max : Int64(clamping: size)
            plan.need(12, at: offset)
            switch name {
            case "desc":
                sampleRate = try bytes.float(at: body, bytes: 8)
                let packetSize = Double(try bytes.number(at: body.adding(16), bytes: 4))
                let framesPerPacket = Double(try bytes.number(at: body.adding(20), bytes: 4))
                // Each value is 0 if it varies between packets.
                plan.learn(bytesPerSecond: packetSize * sampleRate / framesPerPacket)
            case "pakt": frames = Double(try bytes.number(at: body.adding(8), bytes: 8))
            case "data": samples = samples ?? body..<body.adding(count)
            default: break
            }
            if name != "data", count <= Self.maximumChunkSize { plan.need(count, at: body) }
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

/// What a player needs of WAVE (RIFF; EBU Tech 3306 for RF64) and AIFF: every chunk but the samples, also those behind
/// them, and the first seconds.
struct ChunkParser {
    /// A named part of the file.
    private struct Chunk {
        var name: FourCharacterCode
        var body: Int64
        var size: Int64
        var end: Int64 { body.adding(size) }
    }

    /// More chunks than any file has.
    private static let mostChunks = 256
    /// Chunks that are larger are none that a player waits for.
    private static let largestNeeded: Int64 = 4 << 20
    /// How much of the samples players look at to tell whether they are what the head says, or DTS in disguise.
    private static let examined: Int64 = 200 << 10

    private let bytes: ContainerBytes
    private let isLittleEndian: Bool

    init(_ bytes: ContainerBytes, isLittleEndian: Bool) {
        self.bytes = bytes
        self.isLittleEndian = isLittleEndian
    }

    /// Adds what a player needs of a WAVE file.
    func parseWave(_ plan: inout StartPlan) throws(ContainerBytes.Stop) {
        var largeSize: Int64?
        var hasSamples = false
        let samples = try parse(&plan, samplesIn: "data") { chunk, plan throws(ContainerBytes.Stop) in
            switch chunk.name {
            case "fmt ": plan.learn(bytesPerSecond: Double(try number(at: chunk.body.adding(8), bytes: 4)))
            case "ds64": largeSize = Int64(clamping: try number(at: chunk.body.adding(8), bytes: 8))
            case "data":
                // What is written as it is recorded does not know its size.
                if chunk.size == 0xFFFF_FFFF { chunk.size = largeSize ?? .max }
                if chunk.size == 0, !hasSamples { chunk.size = .max }
                hasSamples = true
            default: break
            }
        }
        needSamples(samples, &plan)
    }

    /// Adds what a player needs of an AIFF or AIFF-C file.
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

    /// Adds all chunks but the samples, and returns the first of those; `learn` may correct what a chunk says of its size.
    private func parse(
        _ plan: inout StartPlan, samplesIn name: FourCharacterCode,
        _ learn: (inout Chunk, inout StartPlan) throws(ContainerBytes.Stop) -> Void
    ) throws(ContainerBytes.Stop) -> Chunk {
        var samples: Chunk?
        var offset: Int64 = 12
        for _ in 0..<Self.mostChunks {
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
        if chunk.size <= Self.largestNeeded { plan.need(chunk.size, at: chunk.body) }
    }

    /// The chunk that begins there; nil at the end of the file.
    private func chunk(at offset: Int64) throws(ContainerBytes.Stop) -> Chunk? {
        if offset.adding(8) > bytes.length ?? .max { return nil }
        let name = try bytes.code(at: offset)
        let size = try number(at: offset.adding(4), bytes: 4)
        return Chunk(name: name, body: offset.adding(8), size: Int64(size))
    }

    private func number(at offset: Int64, bytes count: Int64) throws(ContainerBytes.Stop) -> UInt64 {
        try bytes.number(at: offset, bytes: count, isLittleEndian: isLittleEndian)
    }

    /// A number of 80 bits: sign and exponent in 16, then 64 of the fraction with its leading 1.
    private func extendedFloat(at offset: Int64) throws(ContainerBytes.Stop) -> Double {
        let exponent = Int(try bytes.number(at: offset, bytes: 2) & 0x7FFF) - 16_383 - 63
        let fraction = Double(try bytes.number(at: offset.adding(2), bytes: 8))
        return exponent.magnitude > 1000 ? .nan : Double(sign: .plus, exponent: exponent, significand: fraction)
    }
}

/// Tells containers apart by how they begin, and has each one's own parser say what a player needs.
enum ContainerParser {
    /// Adds to `plan` what a player needs.
    ///
    /// - Parameter exactSeconds: How much media, where the container says which bytes that is.
    /// - Throws: Where bytes are lacking, or are not as they should be; what was found by then is in the plan.
    static func parse(
        _ bytes: ContainerBytes, exactSeconds: Double, _ plan: inout StartPlan
    ) throws(ContainerBytes.Stop) {
        if let length = bytes.length, length < 64 { return plan.need(0..<length) }
        plan.need(64, at: 0)
        switch try bytes.code(at: 4) {
        case "ftyp", "moov", "mdat", "free", "skip", "wide", "pnot", "styp", "sidx", "moof", "pdin", "uuid":
            plan.format = .mp4
            return try MP4Parser(bytes, seconds: exactSeconds).parse(&plan)
        default: break
        }
        switch try bytes.code(at: 0) {
        case "RIFF", "RF64", "BW64":
            guard try bytes.has("WAVE", at: 8) else { throw .malformed }
            plan.format = .wave
            try ChunkParser(bytes, isLittleEndian: true).parseWave(&plan)
        case "FORM":
            guard try bytes.has("AIF", at: 8) else { throw .malformed }
            plan.format = .aiff
            try ChunkParser(bytes, isLittleEndian: false).parseAIFF(&plan)
        case "caff":
            plan.format = .caf
            try CAFParser(bytes: bytes).parse(&plan)
        case "OggS":
            plan.format = .ogg
            try OggParser(bytes: bytes).parse(&plan)
        case FourCharacterCode(0x1A45_DFA3):
            plan.format = .matroska
            try MatroskaParser(bytes: bytes).parse(&plan)
        default:
            let audio = try ID3Tag.end(in: bytes, &plan)
            if try bytes.has("fLaC", at: audio) {
                plan.format = .flac
                try FLACParser(bytes: bytes).parse(from: audio, &plan)
            } else {
                try MPEGAudioParser(bytes: bytes).parse(from: audio, &plan)
            }
        }
    }
}

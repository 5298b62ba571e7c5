import ByteRanges

/// A tag that precedes the audio and contains the title and often an image: ID3v2 (id3.org, “ID3 tag version 2.4.0”,
/// §3.1).
enum ID3Tag {
    /// The number of audio bytes that players need to recognize the format.
    private static let recognized: Int64 = 32 << 10
    /// The maximum number of bytes in which players look for a second tag.
    private static let maximumTagSearchLength: Int64 = 8 << 20

    /// Returns the offset of the audio after all ID3v2 tags, or 0 if there are none. A player reads the tags first.
    ///
    /// To recognize the format, mpv reads the start of the file into a buffer whose size doubles. Only the first tag is
    /// skipped, so the buffer has to contain any further tags and some audio.
    static func end(in bytes: ContainerBytes, _ plan: inout StartPlan) throws(ContainerBytes.Stop) -> Int64 {
        var offset: Int64 = 0
        var count = 0
        for _ in 0..<8 {
            guard try bytes.has("ID3", at: offset) else { break }
            let flags = try bytes.number(at: offset + 5, bytes: 1)
            let parts = try bytes.bytes(at: offset + 6, count: 4)
            guard parts.allSatisfy({ $0 < 0x80 }) else { throw .malformed }
            let size = parts.reduce(Int64(0)) { $0 << 7 | Int64($1) }
            offset = offset.adding(10 + size + (flags & 0x10 != 0 ? 10 : 0))
            plan.need(0..<offset)
            count += 1
        }
        if count > 1, offset < Self.maximumTagSearchLength {
            var size: Int64 = 2048
            while size < offset + Self.recognized { size *= 2 }
            plan.need(0..<size)
        }
        return offset
    }
}

/// A parser that finds the bytes a player needs in MPEG audio (ISO/IEC 11172-3).
///
/// These bytes are the tags, the first frame, and the first seconds. The first frame may be the Xing or VBRI header,
/// which states the duration and the size.
struct MPEGAudioParser {
    /// The header of a frame.
    struct Frame: Equatable {
        /// The size of the frame with its header, in bytes.
        var size: Int64
        /// The bit rate, in bits per second.
        var bitRate: Double
        var sampleRate: Double
        var samples: Double
        var isMPEG1: Bool
        var isMono: Bool
        var layer: Int

        /// Parses the header in four bytes. The result is `nil` if they are not a header.
        init?(_ head: UInt64) {
            guard head >> 21 & 0x7FF == 0x7FF else { return nil }
            let version = Int(head >> 19 & 3)
            layer = 4 - Int(head >> 17 & 3)
            let rate = Int(head >> 12 & 15)
            let frequency = Int(head >> 10 & 3)
            guard version != 1, layer < 4, rate != 0, rate != 15, frequency != 3 else { return nil }
            isMPEG1 = version == 3
            isMono = head >> 6 & 3 == 3
            bitRate = Double(Self.rates[isMPEG1 ? layer - 1 : (layer == 1 ? 3 : 4)][rate]) * 1000
            sampleRate = [44_100, 48_000, 32_000][frequency] / (isMPEG1 ? 1 : version == 2 ? 2 : 4)
            samples = layer == 1 ? 384 : layer == 3 && !isMPEG1 ? 576 : 1152
            let padding: Int64 = head >> 9 & 1 == 1 ? (layer == 1 ? 4 : 1) : 0
            let slots = Int64(samples / 8 * bitRate / sampleRate)
            size = (layer == 1 ? slots / 4 * 4 : slots) + padding
        }

        private static let rates = [
            [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
            [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
            [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
            [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
            [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
        ]
    }

    /// The maximum distance between the tags and the first frame.
    private static let searched: Int64 = 8 << 10

    let bytes: ContainerBytes

    /// Adds the bytes that a player needs, starting at the end of the tags.
    func parse(from start: Int64, _ plan: inout StartPlan) throws(ContainerBytes.Stop) {
        let (offset, frame) = try firstFrame(from: start)
        plan.format = .mp3
        plan.learn(bytesPerSecond: frame.bitRate / 8)
        plan.need(0..<offset.adding(frame.size))
        let length = bytes.length
        if let (frames, size) = try variableRate(at: offset, frame), frames > 0 {
            let duration = Double(frames) * frame.samples / frame.sampleRate
            if let size = size ?? length.map({ $0 - offset }) { plan.learn(size, take: duration) }
        }
        plan.needMedia(from: offset.adding(frame.size))
        // Without a tag at the start, players look for the old kind of tag at the end.
        if start == 0, let length { plan.need(max(0, length - 128)..<length) }
    }

    /// Returns the first frame that is directly followed by another frame, or is the last frame.
    private func firstFrame(from start: Int64) throws(ContainerBytes.Stop) -> (Int64, Frame) {
        var offset = start
        let end = start.adding(Self.searched)
        while offset < end {
            if let frame = Frame(try bytes.number(at: offset, bytes: 4)) {
                let next = offset + frame.size
                if next.adding(4) > bytes.length ?? .max { return (offset, frame) }
                if let follower = Frame(try bytes.number(at: next, bytes: 4)), follower.layer == frame.layer,
                    follower.sampleRate == frame.sampleRate
                {
                    return (offset, frame)
                }
            }
            offset += 1
        }
        throw .malformed
    }

    /// Returns the values of the Xing, Info or VBRI header in the first frame: the numbers of frames and of bytes.
    private func variableRate(
        at offset: Int64, _ frame: Frame
    ) throws(ContainerBytes.Stop) -> (frames: UInt64, bytes: Int64?)? {
        guard frame.layer == 3, frame.size > 60 else { return nil }
        let side: Int64 = frame.isMPEG1 ? (frame.isMono ? 17 : 32) : (frame.isMono ? 9 : 17)
        let xing = offset + 4 + side
        switch try bytes.code(at: xing) {
        case "Xing", "Info":
            let flags = try bytes.number(at: xing + 4, bytes: 4)
            guard flags & 1 != 0 else { return nil }
            let frames = try bytes.number(at: xing + 8, bytes: 4)
            return (frames, flags & 2 != 0 ? try bytes.size(at: xing + 12, bytes: 4) : nil)
        default: break
        }
        guard try bytes.has("VBRI", at: offset + 36) else { return nil }
        return (
            frames: try bytes.number(at: offset + 50, bytes: 4), bytes: try bytes.size(at: offset + 46, bytes: 4)
        )
    }
}

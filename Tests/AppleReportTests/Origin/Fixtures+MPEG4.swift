import Foundation

/// Silent AAC in MPEG-4 (ISO 14496-12), with its index before or after the samples.
extension Fixtures {
    /// An empty AAC-LC frame, mono, which consists of one channel element without spectral data.
    private static let silentFrame = Data([0x00, 0xC8, 0x00, 0x80, 0x23, 0x80])
    private static let sampleRate: UInt32 = 44100

    /// Returns a file with `frames` frames of 1024 samples each.
    static func m4a(frames: Int, indexAtEnd: Bool) -> Data {
        let type = box("ftyp", Data("M4A ".utf8) + big(UInt32(0)) + Data("M4A mp42isom".utf8))
        var samples = Data()
        for _ in 0..<frames { samples += silentFrame }
        let media = box("mdat", samples)
        let first = indexAtEnd ? type.count + 8 : type.count + index(frames: frames, offset: 0).count + 8
        let moov = index(frames: frames, offset: UInt32(first))
        return indexAtEnd ? type + media + moov : type + moov + media
    }

    private static func box(_ name: String, _ content: Data) -> Data {
        big(UInt32(8 + content.count)) + Data(name.utf8) + content
    }

    private static func fullBox(_ name: String, flags: UInt32 = 0, _ content: Data) -> Data {
        box(name, big(flags) + content)
    }

    private static let matrix = [0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x4000_0000].reduce(Data()) {
        $0 + big(UInt32($1))
    }

    /// Returns the index, which describes one track whose samples form one chunk at `offset`.
    private static func index(frames: Int, offset: UInt32) -> Data {
        let duration = UInt32(frames * 1024)
        let movie = fullBox(
            "mvhd",
            Data(count: 8) + big(sampleRate) + big(duration) + big(UInt32(0x10000)) + big(UInt16(0x100))
                + Data(count: 10)
                + matrix + Data(count: 24) + big(UInt32(2)))
        let track = fullBox(
            "tkhd", flags: 7,
            Data(count: 8) + big(UInt32(1)) + Data(count: 4) + big(duration) + Data(count: 8) + Data(count: 4)
                + big(UInt16(0x100)) + Data(count: 2) + matrix + Data(count: 8))
        let header = fullBox(
            "mdhd", Data(count: 8) + big(sampleRate) + big(duration) + big(UInt16(0x55C4)) + Data(count: 2))
        let handler = fullBox("hdlr", Data(count: 4) + Data("soun".utf8) + Data(count: 12) + Data("sound\0".utf8))
        let reference = box("dinf", fullBox("dref", big(UInt32(1)) + fullBox("url ", flags: 1, Data())))
        let information = box(
            "minf", fullBox("smhd", Data(count: 4)) + reference + table(frames: frames, offset: offset))
        return box("moov", movie + box("trak", track + box("mdia", header + handler + information)))
    }

    private static func table(frames: Int, offset: UInt32) -> Data {
        let times = fullBox("stts", big(UInt32(1)) + big(UInt32(frames)) + big(UInt32(1024)))
        let chunks = fullBox(
            "stsc", big(UInt32(1)) + big(UInt32(1)) + big(UInt32(frames)) + big(UInt32(1)))
        let sizes = fullBox("stsz", big(UInt32(silentFrame.count)) + big(UInt32(frames)))
        let offsets = fullBox("stco", big(UInt32(1)) + big(offset))
        return box("stbl", fullBox("stsd", big(UInt32(1)) + entry) + times + chunks + sizes + offsets)
    }

    /// The description of the samples, with an AudioSpecificConfig of AAC-LC, 44.1 kHz, mono (ISO 14496-3 §1.6.2.1).
    private static var entry: Data {
        let configuration = descriptor(5, Data([0x12, 0x08]))
        let decoder = descriptor(
            4, Data([0x40, 0x15]) + Data(count: 3) + big(UInt32(8000)) + big(UInt32(8000)) + configuration)
        let stream = descriptor(3, big(UInt16(1)) + Data([0]) + decoder + descriptor(6, Data([2])))
        return box(
            "mp4a",
            Data(count: 6) + big(UInt16(1)) + Data(count: 8) + big(UInt16(1)) + big(UInt16(16)) + Data(count: 4)
                + big(sampleRate << 16) + fullBox("esds", stream))
    }

    private static func descriptor(_ tag: UInt8, _ content: Data) -> Data {
        Data([tag, UInt8(content.count)]) + content
    }
}

import Foundation

/// Short media files that this code generates. They contain silence or a tone.
enum Fixtures {
    /// A file to serve from an origin.
    struct File: Sendable {
        var bytes: Data
        var contentType: String
    }

    /// All files, by name.
    static let all: [String: File] = [
        "tone.wav": File(bytes: wave(seconds: 4, sampleRate: 8000), contentType: "audio/wav"),
        "long.wav": File(bytes: wave(seconds: 90, sampleRate: 44100), contentType: "audio/wav"),
        "constant.mp3": File(bytes: mp3([(bitrate: 9, frames: 155)]), contentType: "audio/mpeg"),
        "variable.mp3": File(
            bytes: mp3([(bitrate: 1, frames: 80), (bitrate: 14, frames: 80)]), contentType: "audio/mpeg"),
        "front.m4a": File(bytes: m4a(frames: 175, indexAtEnd: false), contentType: "audio/mp4"),
        "end.m4a": File(bytes: m4a(frames: 175, indexAtEnd: true), contentType: "audio/mp4"),
    ]

    /// Returns a mono tone with 16 bits per sample in a WAVE file.
    static func wave(seconds: Int, sampleRate: Int) -> Data {
        let count = seconds * sampleRate
        var data = Data("RIFF".utf8) + little(UInt32(36 + count * 2)) + Data("WAVEfmt ".utf8)
        data += little(UInt32(16)) + little(UInt16(1)) + little(UInt16(1)) + little(UInt32(sampleRate))
        data += little(UInt32(sampleRate * 2)) + little(UInt16(2)) + little(UInt16(16))
        data += Data("data".utf8) + little(UInt32(count * 2))
        // One period of the tone is repeated, which is fast and avoids clicks.
        let period = sampleRate / 441 * 2
        let samples = (0..<period).map { index in
            Int16(4000 * sin(Double(index) / Double(period) * 2 * .pi))
        }
        var tone = Data()
        for sample in samples { tone += little(UInt16(bitPattern: sample)) }
        while data.count < 44 + count * 2 { data += tone.prefix(44 + count * 2 - data.count) }
        return data
    }

    /// Returns a file of silent frames in MPEG-1 layer III, mono, at 44.1 kHz, without a Xing header.
    ///
    /// A frame consists of 1152 samples. Its side information and its data are zeros, which is valid and silent.
    ///
    /// - Parameter parts: The parts of the file, each with the index of its bit rate (ISO 11172-3 §2.4.2.3) and its
    ///   number of frames.
    static func mp3(_ parts: [(bitrate: UInt8, frames: Int)]) -> Data {
        let bitrates = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]
        var data = Data()
        for part in parts {
            let size = 144 * bitrates[Int(part.bitrate)] * 1000 / 44100
            let frame = Data([0xFF, 0xFB, part.bitrate << 4, 0xC4]) + Data(count: size - 4)
            for _ in 0..<part.frames { data += frame }
        }
        return data
    }

    static func little<T: FixedWidthInteger>(_ value: T) -> Data {
        withUnsafeBytes(of: value.littleEndian) { Data($0) }
    }

    static func big<T: FixedWidthInteger>(_ value: T) -> Data { withUnsafeBytes(of: value.bigEndian) { Data($0) } }
}

import ByteRanges
import Foundation
import SpoolTesting
import Testing

@testable import Spool

@Suite("Container ranges that a player needs to start", .timeLimit(.minutes(10)))
struct StartRangesTests {
    private static let seconds = 20

    private func data(_ sample: SampleContainer) async throws -> Data {
        try Data(contentsOf: try await sample.file(seconds: Self.seconds))
    }

    private func format(_ sample: SampleContainer) -> StartPlan.Format {
        switch sample {
        case .mp3, .bareMP3: .mp3
        case .m4a, .m4aMoovAtEnd, .mp4, .mp4MoovAtEnd, .mov: .mp4
        case .fragmentedMP4, .bareFragmentedMP4: .fragmentedMP4
        case .flac: .flac
        case .wav: .wave
        case .aiff: .aiff
        case .caf, .packetCAF: .caf
        case .ogg, .opus: .ogg
        case .webm, .matroska: .matroska
        }
    }

    @Test(
        "Each container is recognized after a few reads, and playback can start with few bytes",
        arguments: SampleContainer.allCases
    )
    func little(_ sample: SampleContainer) async throws {
        let data = try await data(sample)
        let search = try ContainerSearch(data)
        #expect(search.plan.format == format(sample))
        #expect(search.looks.count <= 24, "\(search.looks.count) looks")
        #expect(search.plan.ranges.contains(0..<64))
        // A fragment contains 2 of 20 seconds, and a short video has a relatively large index. For an Ogg file, the
        // last 64 KiB are needed.
        let tail: Int64 = [.ogg, .opus].contains(sample) ? 65_307 : 0
        #expect(search.plan.ranges.byteCount < Int64(data.count) / 4 + tail, "\(search.plan.ranges)")
    }

    @Test(
        "The computed bit rate is within 10 % of the actual rate, and the duration within 5 %",
        arguments: SampleContainer.allCases)
    func rate(_ sample: SampleContainer) async throws {
        let data = try await data(sample)
        let plan = try ContainerSearch(data).plan
        guard sample != .bareFragmentedMP4 else {
            // The file does not contain the duration, because it is unknown when fragments are written.
            return #expect(plan.bytesPerSecond == nil)
        }
        let rate = try #require(plan.bytesPerSecond)
        #expect(abs(rate / (Double(data.count) / Double(Self.seconds)) - 1) < 0.1, "\(rate)")
        let duration = try #require(plan.duration)
        #expect(abs(duration / Double(Self.seconds) - 1) < 0.05, "\(duration)")
    }

    @Test(
        "The ranges for the first five of 20 seconds cover 20 % to 45 % of the file",
        arguments: SampleContainer.allCases)
    func seconds(_ sample: SampleContainer) async throws {
        guard sample != .bareFragmentedMP4 else { return }
        let data = try await data(sample)
        let plan = try ContainerSearch(data, seconds: 5).plan
        let start = try ContainerSearch(data).plan
        let tail: Int64 = [.ogg, .opus].contains(sample) ? 65_307 : 0
        let share = Double(plan.ranges.byteCount - tail) / Double(data.count)
        #expect(share > 0.2 && share < 0.45, "\(share)")
        #expect(plan.ranges.byteCount > start.ranges.byteCount)
    }

    /// Compares the first half second of audio that ffmpeg decodes from the required ranges with the same audio from
    /// the complete file.
    @Test(
        "A decoder decodes the first half second from the required ranges if all other bytes are zero",
        arguments: SampleContainer.allCases)
    func decodes(_ sample: SampleContainer) async throws {
        guard let ffmpeg = Tool("ffmpeg") else { return }
        let whole = try await data(sample)
        var holed = Data(count: whole.count)
        for range in try ContainerSearch(whole).plan.ranges {
            let part = Int(range.lowerBound)..<Int(range.upperBound)
            holed.replaceSubrange(part, with: whole[part])
        }
        let scratch = try ScratchDirectory()
        let files = ["whole", "holed"].map { scratch.file("\($0).\((sample.rawValue as NSString).pathExtension)") }
        try whole.write(to: URL(fileURLWithPath: files[0]))
        try holed.write(to: URL(fileURLWithPath: files[1]))
        var hashes: [String] = []
        for file in files {
            let arguments = ["-nostdin", "-v", "fatal", "-i", file, "-t", "0.5", "-map", "0:a", "-f", "md5", "-"]
            let result = try await ffmpeg.run(arguments)
            #expect(result.status == 0)
            hashes.append(result.text)
        }
        #expect(hashes[0] == hashes[1] && hashes[0].contains("MD5="), "\(hashes)")
    }

    @Test(
        "Playback needs the entire index, regardless of its position in the file",
        arguments: [SampleContainer.mp4, .mp4MoovAtEnd, .m4aMoovAtEnd])
    func index(_ sample: SampleContainer) async throws {
        let data = try await data(sample)
        let name = try #require(data.range(of: Data("moov".utf8)))
        let start = Int64(name.lowerBound - 4)
        let size = data[name.lowerBound - 4..<name.lowerBound].reduce(Int64(0)) { $0 << 8 | Int64($1) }
        let search = try ContainerSearch(data)
        #expect(search.plan.ranges.contains(start..<start + size))
        // A read of the index's tables fetches all of the index, instead of one table after another.
        #expect(search.fetchedRanges.contains(start + size - 1))
    }

    @Test("For an unknown format, the first and last bytes are needed; for a small file, all bytes are needed")
    func unknown() throws {
        var random = SplitMix(7)
        let noise = Data((0..<1_000_000).map { _ in UInt8(truncatingIfNeeded: random.next()) & 0x7F })
        let search = try ContainerSearch(noise)
        #expect(search.plan.format == .unknown)
        #expect(search.plan.ranges == ByteRangeSet([0..<262_144, 934_464..<1_000_000]))
        for count in [0, 1, 63, 64, 65, 1000] {
            #expect(try ContainerSearch(noise.prefix(count)).plan.ranges.byteCount == Int64(count))
        }
    }

    @Test("E416: after two ID3 tags, the start includes the bytes from which players recognize the format")
    func twoTags() async throws {
        // ffmpeg writes one tag.
        let one = try await data(.mp3) + Data(count: 4 << 20)
        #expect(try one.starts(with: Data("ID3".utf8)) && !ContainerSearch(one).plan.ranges.contains(0..<2 << 20))
        let count = 1_100_000
        let size = [21, 14, 7, 0].map { UInt8(count >> $0 & 0x7F) }
        let two = Data(Array("ID3".utf8) + [3, 0, 0] + size) + Data(count: count) + one
        let plan = try ContainerSearch(two).plan
        #expect(plan.format == .mp3 && plan.ranges.contains(0..<2 << 20))
    }

    @Test("For an origin without range support, only the first bytes are needed")
    func sequential() async throws {
        let data = try await data(.mp4MoovAtEnd)
        let search = try ContainerSearch(data, length: Int64(data.count), isSeekable: false)
        #expect(search.plan.ranges.count == 1 && search.plan.ranges.bounds?.lowerBound == 0)
        #expect(search.looks.allSatisfy { $0.upperBound <= 1 << 20 })
    }

    @Test("Invalid sizes in a container are ignored and do not cause an overflow")
    func huge() throws {
        // `moov` of 2⁶³ − 1 bytes, `mdat` of 2⁶⁴ − 1, a tag of 256 MiB, a chunk of 4 GiB, an element of 2⁵⁶ − 2.
        let heads: [[UInt8]] = [
            [0, 0, 0, 1] + Array("moov".utf8) + [0x7F] + Array(repeating: 0xFF, count: 7),
            [0, 0, 0, 1] + Array("mdat".utf8) + Array(repeating: 0xFF, count: 8),
            Array("ID3".utf8) + [4, 0, 0, 0x7F, 0x7F, 0x7F, 0x7F],
            Array("RIFF".utf8) + [255, 255, 255, 255] + Array("WAVEdata".utf8) + [254, 255, 255, 255],
            [0x1A, 0x45, 0xDF, 0xA3, 0x80, 0x18, 0x53, 0x80, 0x67, 1, 255, 255, 255, 255, 255, 255, 254],
            Array("caff".utf8) + [0, 1, 0, 0] + Array("desc".utf8) + [0x7F] + Array(repeating: 0xFF, count: 7),
        ]
        for head in heads {
            let data = Data(head) + Data(count: 1000)
            for length in [nil, Int64(data.count), Int64.max] {
                let search = try ContainerSearch(data, length: length)
                #expect(search.plan.ranges.byteCount <= StartPlan.maximumByteCount)
            }
        }
    }
}

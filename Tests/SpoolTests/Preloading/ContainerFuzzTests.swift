import Foundation
import SpoolTesting
import Testing

@testable import Spool

@Suite("Damaged or forged containers", .timeLimit(.minutes(10)))
struct ContainerFuzzTests {
    /// The number of containers, set by `SPOOL_CONTAINERS`.
    private static let count =
        ProcessInfo.processInfo.environment["SPOOL_CONTAINERS"].flatMap(Int.init) ?? 3000

    @Test("For any content and length, the search for start ranges stays within its limits on reads and bytes")
    func ends() async throws {
        var corpus: [[UInt8]] = []
        for sample in SampleContainer.allCases {
            let data = try Data(contentsOf: try await sample.file(seconds: 1))
            // The middle of a large file is removed, so that the search can still reach an index at the end.
            corpus.append(Array(data.count > 200_000 ? data.prefix(100_000) + data.suffix(60_000) : data))
        }
        for seed in 0..<UInt64(Self.count) {
            var random = SplitMix(seed)
            var bytes = random.pick(corpus)
            Self.damage(&bytes, &random)
            let length = Self.length(bytes.count, &random)
            let seconds = random.pick([nil, 0, 0.5, 30, .infinity, .nan, -1, 1e300] as [Double?])
            do {
                _ = try ContainerSearch(
                    Data(bytes), length: length, seconds: seconds, isSeekable: !random.chance(8))
            } catch {
                Issue.record("seed \(seed): \(error)")
            }
        }
    }

    @Test("The search for start ranges also ends if random bytes follow the first bytes of a container")
    func noise() throws {
        let heads: [[UInt8]] = [
            Array("\0\0\0\u{18}ftypisom".utf8), Array("ID3".utf8), [0xFF, 0xFB], Array("fLaC".utf8),
            Array("RIFF\0\0\0\0WAVE".utf8), Array("FORM\0\0\0\0AIFF".utf8), Array("caff\0\u{1}\0\0".utf8),
            Array("OggS\0\u{2}".utf8), [0x1A, 0x45, 0xDF, 0xA3, 0x80, 0x18, 0x53, 0x80, 0x67], [],
        ]
        for seed in 0..<UInt64(Self.count) {
            var random = SplitMix(seed)
            let small = random.chance(2)
            let head = random.pick(heads)
            let bytes = head + (0..<random.below(9000)).map { _ in UInt8(random.below(small ? 4 : 256)) }
            _ = try ContainerSearch(Data(bytes), length: Self.length(bytes.count, &random))
        }
    }

    /// Returns the length that an origin sends, which is correct in most cases.
    private static func length(_ count: Int, _ random: inout SplitMix) -> Int64? {
        switch random.below(8) {
        case 0: nil
        case 1: Int64(count / 2)
        case 2: Int64(count) * 3
        case 3: .max
        default: Int64(count)
        }
    }

    private static func damage(_ bytes: inout [UInt8], _ random: inout SplitMix) {
        for _ in 0..<1 + random.below(12) where bytes.count > 16 {
            // Most changes are made to the first bytes, which contain the structures.
            let reach = random.chance(3) ? bytes.count : min(bytes.count, 4000)
            let place =
                random.chance(3) ? bytes.count - 9 - random.below(min(bytes.count - 9, 8000)) : random.below(reach - 8)
            switch random.below(6) {
            case 0: bytes[place] = UInt8(truncatingIfNeeded: random.next())
            case 1: bytes[place] ^= 1 << UInt8(random.below(8))
            case 2:
                let value = random.pick([0, 1, 7, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 0xFFFF_FFF8] as [UInt32])
                for index in 0..<4 { bytes[place + index] = UInt8(truncatingIfNeeded: value >> (24 - 8 * index)) }
            case 3: bytes.removeSubrange(place..<min(bytes.count, place + 1 + random.below(64)))
            case 4:
                let part = Array(bytes[place..<min(bytes.count, place + 1 + random.below(256))])
                bytes.insert(contentsOf: part, at: random.below(reach - 8))
            default: if random.chance(4) { bytes.removeLast(min(bytes.count, random.below(bytes.count))) }
            }
        }
    }
}

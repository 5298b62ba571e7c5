import Foundation
import SpoolTesting
import Testing

@Suite struct PatternBytesTests {
    let pattern = PatternBytes(seed: 7, length: 1 << 20)

    @Test func `Bytes are independent of the start of a read`() {
        let all = pattern.bytes(0..<20_000)
        for start in [0, 1, 7, 8, 9, 4095, 4096, 4097, 4103, 4104, 12_288] as [Int64] {
            for count in [0, 1, 2, 8, 4095, 4096, 5000] as [Int64] {
                let piece = pattern.bytes(start..<start + count)
                #expect(piece == Array(all[Int(start)..<Int(start + count)]), "from \(start), \(count) bytes")
            }
        }
        #expect(pattern[4096] == all[4096])
    }

    @Test func `Verification reports the offset of a flipped byte`() throws {
        var bytes = pattern.bytes(5000..<15_000)
        try pattern.verify(bytes, at: 5000)
        for index in [0, 3191, 3192, 3195, 9999] {
            bytes[index] ^= 1
            #expect(bytes.withUnsafeBytes { pattern.firstMismatch(in: $0, at: 5000) } == Int64(5000 + index))
            #expect(throws: PatternMismatch.self) { try pattern.verify(bytes, at: 5000) }
            bytes[index] ^= 1
        }
    }

    @Test func `Verification detects bytes from another offset or seed`() {
        let page = pattern.bytes(8192..<12_288)
        for offset in [0, 8191, 8193, 4096, 12_288, 8192 + 65_536, 8192 + (1 << 32)] as [Int64] {
            #expect(page.withUnsafeBytes { pattern.firstMismatch(in: $0, at: offset) } != nil, "at \(offset)")
        }
        let other = PatternBytes(seed: 8, length: 1 << 20)
        #expect(page.withUnsafeBytes { other.firstMismatch(in: $0, at: 8192) } != nil)
        #expect(page.withUnsafeBytes { pattern.firstMismatch(in: $0, at: 8192) } == nil)
    }

    @Test func `Verification rejects zeros`() {
        let zeros = [UInt8](repeating: 0, count: 4096)
        #expect(zeros.withUnsafeBytes { pattern.firstMismatch(in: $0, at: 40_960) } != nil)
    }

    @Test func `Offsets near the maximum of Int64 are verified`() throws {
        let far = PatternBytes(length: .max)
        let range = Int64.max - 5000..<Int64.max - 1
        try far.verify(far.bytes(range), at: range.lowerBound)
    }
}

import Foundation

/// Wraps bytes into a valid gzip file without making them smaller: "stored" blocks (RFC 1951 §3.2.4, RFC 1952).
enum StoredGzip {
    static func encode(_ bytes: [UInt8]) -> Data {
        var out = Data([0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255])
        var position = 0
        repeat {
            let count = min(65535, bytes.count - position)
            let isLast: UInt8 = position + count == bytes.count ? 1 : 0
            out.append(contentsOf: [isLast, UInt8(count & 255), UInt8(count >> 8)])
            out.append(contentsOf: [UInt8(~count & 255), UInt8((~count >> 8) & 255)])
            out.append(contentsOf: bytes[position..<position + count])
            position += count
        } while position < bytes.count
        for value in [crc32(bytes), UInt32(truncatingIfNeeded: bytes.count)] {
            withUnsafeBytes(of: value.littleEndian) { out.append(contentsOf: $0) }
        }
        return out
    }

    private static func crc32(_ bytes: [UInt8]) -> UInt32 {
        var crc = UInt32.max
        for byte in bytes {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = crc & 1 == 1 ? (crc >> 1) ^ 0xEDB8_8320 : crc >> 1 }
        }
        return ~crc
    }
}

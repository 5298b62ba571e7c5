#if AsyncHTTPClient && (os(Linux) || os(macOS))
import NIOCore

/// A filter that removes white space after the chunk sizes of one chunked body (RFC 9112 §7.1), before the body is
/// parsed.
///
/// Some embedded servers and load balancers send such white space. Players and curl accept it, and it is unambiguous.
/// The filter does not change any other bytes. After an unexpected byte, it leaves the rest of the body unchanged, so
/// that the parser rejects it.
struct ChunkSizeCorrector {
    private enum State {
        /// The next byte belongs to a size. Exits: `spaces`, `rest`, `unchanged`.
        case size(digits: Int, value: UInt64)
        /// White space follows a size. It is withheld until a line break or an extension follows. Exits: `rest`,
        /// `unchanged`.
        case spaces(size: UInt64)
        /// An extension, if any, and a line break follow. Exits: `data`, `unchanged`.
        case rest(size: UInt64)
        /// Data and a line break follow, with this number of bytes in total. Exit: `size`.
        case data(UInt64)
        /// All remaining bytes are trailers, or are invalid. No exit.
        case unchanged
    }

    /// The maximum number of digits of a size that is examined. Longer sizes are left to the parser.
    private static let maximumDigits = 15

    private var state = State.size(digits: 0, value: 0)

    /// Returns the next bytes of the body, without white space after chunk sizes.
    mutating func corrected(_ buffer: ByteBuffer) -> ByteBuffer {
        // The buffer is copied only if bytes are removed.
        var output: ByteBuffer?
        buffer.withUnsafeReadableBytes { bytes in
            // The bytes from `start` to `index` have not been copied yet.
            var (start, index) = (0, 0)
            func copy(_ output: inout ByteBuffer?) {
                if output == nil { output = ByteBuffer() }
                output?.writeBytes(bytes[start..<index])
            }
            while index < bytes.count {
                let byte = bytes[index]
                switch state {
                case .size(let digits, let value):
                    if let digit = Self.digit(byte), digits < Self.maximumDigits {
                        state = .size(digits: digits + 1, value: value << 4 | digit)
                        index += 1
                    } else if digits > 0, Self.isSpace(byte) {
                        copy(&output)
                        start = index
                        state = .spaces(size: value)
                    } else {
                        state = digits > 0 && Self.endsSize(byte) ? .rest(size: value) : .unchanged
                    }
                case .spaces(let value):
                    if Self.isSpace(byte) {
                        index += 1
                    } else if Self.endsSize(byte) {
                        state = .rest(size: value)
                    } else {
                        // The parser must see that something follows the size. One space is sufficient.
                        output = output ?? ByteBuffer()
                        output?.writeInteger(UInt8(ascii: " "))
                        state = .unchanged
                    }
                    start = index
                    output = output ?? ByteBuffer()
                case .rest(let value):
                    guard let end = bytes[index...].firstIndex(of: UInt8(ascii: "\n")) else {
                        index = bytes.count
                        break
                    }
                    index = end + 1
                    state = value == 0 ? .unchanged : .data(value + 2)
                case .data(let count):
                    let received = min(UInt64(bytes.count - index), count)
                    index += Int(received)
                    state = received == count ? .size(digits: 0, value: 0) : .data(count - received)
                case .unchanged: index = bytes.count
                }
            }
            if output != nil { copy(&output) }
        }
        return output ?? buffer
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }

    /// Returns whether a byte may follow a size: the start of a line break or of an extension.
    private static func endsSize(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "\r") || byte == UInt8(ascii: ";") }

    private static func digit(_ byte: UInt8) -> UInt64? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt64(byte - UInt8(ascii: "0"))
        case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt64(byte - UInt8(ascii: "a") + 10)
        case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt64(byte - UInt8(ascii: "A") + 10)
        default: nil
        }
    }
}
#endif

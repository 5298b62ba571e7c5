#if Proxy
import ByteRanges
import NIOCore

/// A reader that extracts the body of one request from the bytes of a connection (RFC 9112 §6, §7.1).
///
/// It does not perform I/O. It ignores chunk extensions and trailers. Chunks must strictly follow the grammar, so that
/// all other parsers find the same end of the body.
struct RequestBodyReader {
    private enum State {
        /// The number of remaining bytes in a body of known length, or in the current chunk.
        case bytes(left: Int64)
        case chunkSize
        case afterChunk
        case trailers
        case ended
    }

    /// A piece of the body.
    enum Piece {
        case bytes(ByteBuffer)
        /// More bytes must be received first.
        case incomplete
        case end
    }

    private var state: State
    private let isChunked: Bool
    /// The number of trailer bytes that were ignored.
    private var trailerBytes = 0
    private static let lineLimit = 4096

    init(_ body: RequestHead.Body) {
        switch body {
        case .none: (state, isChunked) = (.ended, false)
        case .length(let length): (state, isChunked) = (.bytes(left: length), false)
        case .chunked: (state, isChunked) = (.chunkSize, true)
        }
    }

    /// Returns the next piece.
    ///
    /// - Throws: `RequestFailure` with status 400 if the chunks are malformed.
    mutating func next(in buffer: inout ByteBuffer) throws(RequestFailure) -> Piece {
        while true {
            switch state {
            case .ended: return .end
            case .bytes(let left):
                if left == 0 {
                    state = isChunked ? .afterChunk : .ended
                    continue
                }
                guard let part = buffer.readSlice(length: Int(min(left, Int64(buffer.readableBytes)))),
                    part.readableBytes > 0
                else { return .incomplete }
                state = .bytes(left: left - Int64(part.readableBytes))
                return .bytes(part)
            case .afterChunk:
                let end = buffer.readableBytesView.prefix(2)
                guard end.elementsEqual([0x0D, 0x0A].prefix(end.count)) else { throw malformed }
                guard end.count == 2 else { return .incomplete }
                buffer.moveReaderIndex(forwardBy: 2)
                state = .chunkSize
            case .chunkSize:
                guard let line = try line(in: &buffer) else { return .incomplete }
                let size = try chunkSize(line)
                state = size == 0 ? .trailers : .bytes(left: size)
            case .trailers:
                guard let line = try line(in: &buffer) else { return .incomplete }
                trailerBytes += line.count
                guard trailerBytes <= Self.lineLimit else { throw malformed }
                if line.isEmpty { state = .ended }
            }
        }
    }

    private var malformed: RequestFailure { RequestParser.malformed("the chunked body is malformed") }

    private func line(in buffer: inout ByteBuffer) throws(RequestFailure) -> ByteBufferView? {
        let view = buffer.readableBytesView
        guard let end = view.firstIndex(of: 0x0A) else {
            if view.count > Self.lineLimit { throw malformed }
            return nil
        }
        let line = view[view.startIndex..<end]
        guard line.last == 0x0D, !line.dropLast().contains(0x0D), !line.contains(0) else { throw malformed }
        buffer.moveReaderIndex(forwardBy: line.count + 1)
        return line.dropLast()
    }

    private func chunkSize(_ line: ByteBufferView) throws(RequestFailure) -> Int64 {
        var size: Int64 = 0
        var digits = 0
        for byte in line {
            let value: Int64
            switch byte {
            case 0x30...0x39: value = Int64(byte) - 0x30
            case 0x41...0x46: value = Int64(byte) - 0x37
            case 0x61...0x66: value = Int64(byte) - 0x57
            case UInt8(ascii: ";") where digits > 0: return size
            default: throw malformed
            }
            digits += 1
            guard digits <= 15 else { throw malformed }
            size = size << 4 | value
            guard size <= NumberLimits.byteOffset else { throw malformed }
        }
        guard digits > 0 else { throw malformed }
        return size
    }
}
#endif

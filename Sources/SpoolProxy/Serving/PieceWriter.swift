#if Proxy
import NIOCore
import Spool
import SpoolStorage

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Writes the pieces of one response, at most two at a time on their way, in chunks where the client counts by them.
///
/// What is brought from the origin for this client goes at its pace: what comes next is asked for when the piece before has
/// gone to its machine, rather than into this one's socket, until it has taken a megabyte; then while the last piece goes.
struct PieceWriter {
    private let channel: any Channel
    private let progress: SendProgress
    private let isChunked: Bool
    private let isPaced: Bool
    private var pending: EventLoopFuture<Void>?
    private var written = 0

    /// Bytes of a paced response after which two pieces may be on their way.
    private static let trial = 1 << 20
    /// How much of a paced response may wait in the socket until the client's side has room.
    private static let unsent = 4 << 10

    /// - Parameter isPaced: Whether the bytes come from the origin as the client takes them.
    init(channel: any Channel, progress: SendProgress, isChunked: Bool, isPaced: Bool = false) {
        self.channel = channel
        self.progress = progress
        self.isChunked = isChunked
        self.isPaced = isPaced
        if isPaced { limitUnsent(Self.unsent) }
    }

    /// Where the system refuses, more lies in its socket.
    private func limitUnsent(_ count: Int) {
        channel.setOption(.tcpOption(.init(rawValue: TCP_NOTSENT_LOWAT)), value: count).whenComplete { _ in }
    }

    /// Writes the head, to go out with the first piece.
    mutating func begin(_ head: ByteBuffer) { pending = channel.write(IOData.byteBuffer(head)) }

    func flush() { channel.flush() }

    mutating func write(_ bytes: ByteBuffer) async throws {
        guard bytes.readableBytes > 0 else { return }
        try await piece(count: bytes.readableBytes, holding: nil) { range in
            var part = bytes
            part.moveReaderIndex(forwardBy: range.lowerBound)
            return .byteBuffer(part.readSlice(length: range.count) ?? part)
        }
    }

    mutating func write(_ chunk: MediaChunk) async throws {
        if let slice = chunk.slice, let descriptor = slice.fileDescriptor {
            let sent = try SentSlice(slice, descriptor)
            try await piece(count: slice.count, holding: sent) { sent.data($0) }
        } else {
            try await write(chunk.withUnsafeBytes { ByteBuffer(bytes: $0) })
        }
    }

    private mutating func piece(
        count: Int, holding slice: SentSlice?, _ data: (Range<Int>) -> IOData
    ) async throws {
        let former = pending
        if isChunked { channel.write(IOData.byteBuffer(chunkHead(count)), promise: nil) }
        var rest = 0..<count
        if isPaced, count > Self.unsent {
            // The socket takes all of a piece at once, sent or not, but the next one only when it has sent that.
            channel.write(data(0..<count - Self.unsent), promise: nil)
            rest = count - Self.unsent..<count
        }
        let last = channel.write(data(rest))
        if isChunked { channel.write(IOData.byteBuffer(ByteBuffer(staticString: "\r\n")), promise: nil) }
        channel.flush()
        last.whenComplete { [progress] result in
            slice?.letGo()
            if case .success = result { progress.sent(count) }
        }
        pending = last
        written += count
        try await (isPaced && written < Self.trial ? last : former)?.get()
    }

    private func chunkHead(_ count: Int) -> ByteBuffer { ByteBuffer(string: String(count, radix: 16) + "\r\n") }

    /// All pieces are written; waits until they have gone out.
    mutating func end() async -> SendOutcome {
        if isChunked { pending = channel.write(IOData.byteBuffer(ByteBuffer(staticString: "0\r\n\r\n"))) }
        channel.flush()
        if isPaced { limitUnsent(0) }
        do {
            try await pending?.get()
            return .complete
        } catch {
            return .cut("\(error)")
        }
    }

    /// Nothing more comes: what was written goes out, as far as it may.
    mutating func abandon() async {
        channel.flush()
        try? await pending?.get()  // The connection is closed in any case.
    }
}
#endif

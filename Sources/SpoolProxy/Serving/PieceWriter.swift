#if Proxy
import NIOCore
import Spool
import SpoolStorage

/// Writes the pieces of one response, at most two at a time on their way, in chunks where the client counts by them.
struct PieceWriter {
    private let channel: any Channel
    private let progress: SendProgress
    private let isChunked: Bool
    private var pending: EventLoopFuture<Void>?

    init(channel: any Channel, progress: SendProgress, isChunked: Bool) {
        self.channel = channel
        self.progress = progress
        self.isChunked = isChunked
    }

    /// Writes the head, to go out with the first piece.
    mutating func begin(_ head: ByteBuffer) { pending = channel.write(IOData.byteBuffer(head)) }

    func flush() { channel.flush() }

    mutating func write(_ bytes: ByteBuffer) async throws {
        guard bytes.readableBytes > 0 else { return }
        try await piece(.byteBuffer(bytes), count: bytes.readableBytes, holding: nil)
    }

    mutating func write(_ chunk: MediaChunk) async throws {
        if let slice = chunk.slice, let descriptor = slice.fileDescriptor {
            let sent = SentSlice(slice, descriptor)
            try await piece(sent.data, count: slice.count, holding: sent)
        } else {
            try await write(chunk.withUnsafeBytes { ByteBuffer(bytes: $0) })
        }
    }

    private mutating func piece(_ data: IOData, count: Int, holding slice: SentSlice?) async throws {
        let former = pending
        if isChunked { channel.write(IOData.byteBuffer(chunkHead(count)), promise: nil) }
        let written = channel.write(data)
        if isChunked { channel.write(IOData.byteBuffer(ByteBuffer(staticString: "\r\n")), promise: nil) }
        channel.flush()
        written.whenComplete { [progress] result in
            slice?.letGo()
            if case .success = result { progress.sent(count) }
        }
        pending = written
        try await former?.get()
    }

    private func chunkHead(_ count: Int) -> ByteBuffer { ByteBuffer(string: String(count, radix: 16) + "\r\n") }

    /// All pieces are written; waits until they have gone out.
    mutating func end() async -> SendOutcome {
        if isChunked { pending = channel.write(IOData.byteBuffer(ByteBuffer(staticString: "0\r\n\r\n"))) }
        channel.flush()
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

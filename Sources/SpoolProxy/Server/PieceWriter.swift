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

/// A writer of the pieces of one response, at most two at a time. If the response is chunked, each piece is a chunk.
///
/// Bytes that are fetched for this client are sent at its speed (a *paced* response). Until the client has received one
/// megabyte, the next piece is requested only after the previous one has left this machine. After that, each piece is
/// requested while the previous one is being sent.
struct PieceWriter {
    private let channel: any Channel
    private let progress: SendProgress
    private let isChunked: Bool
    private let isPaced: Bool
    private var pending: EventLoopFuture<Void>?
    private var written = 0

    /// The number of bytes of a paced response after which two pieces may be sent at a time.
    private static let trial = 1 << 20
    /// The number of bytes of a paced response that may wait in the socket.
    private static let unsent = 4 << 10

    /// - Parameter isPaced: Whether the bytes are fetched at the speed of the client.
    init(channel: any Channel, progress: SendProgress, isChunked: Bool, isPaced: Bool = false) {
        self.channel = channel
        self.progress = progress
        self.isChunked = isChunked
        self.isPaced = isPaced
        if isPaced { limitUnsent(Self.unsent) }
    }

    /// Limits the bytes that wait in the socket. If the system rejects the option, more bytes may wait in the socket.
    private func limitUnsent(_ count: Int) {
        channel.setOption(.tcpOption(.init(rawValue: TCP_NOTSENT_LOWAT)), value: count).whenComplete { _ in }
    }

    /// Writes the head, which is sent with the first piece.
    mutating func start(_ head: ByteBuffer) { pending = channel.write(IOData.byteBuffer(head)) }

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
        let previous = pending
        if isChunked { channel.write(IOData.byteBuffer(chunkHead(count)), promise: nil) }
        var rest = 0..<count
        if isPaced, count > Self.unsent {
            // The socket accepts a whole piece immediately, but accepts the next piece only after it has sent the first
            // one.
            channel.write(data(0..<count - Self.unsent), promise: nil)
            rest = count - Self.unsent..<count
        }
        let last = channel.write(data(rest))
        if isChunked { channel.write(IOData.byteBuffer(ByteBuffer(staticString: "\r\n")), promise: nil) }
        channel.flush()
        last.whenComplete { [progress] result in
            slice?.release()
            if case .success = result { progress.sent(count) }
        }
        pending = last
        written += count
        try await (isPaced && written < Self.trial ? last : previous)?.get()
    }

    private func chunkHead(_ count: Int) -> ByteBuffer { ByteBuffer(string: String(count, radix: 16) + "\r\n") }

    /// Ends the response, and waits until all pieces have been sent.
    mutating func end() async -> SendOutcome {
        if isChunked { pending = channel.write(IOData.byteBuffer(ByteBuffer(staticString: "0\r\n\r\n"))) }
        channel.flush()
        if isPaced { limitUnsent(0) }
        do {
            try await pending?.get()
            return .complete
        } catch {
            return .cut(by: error)
        }
    }

    /// Sends the pieces that were written before a failure, if possible, and waits until they are sent.
    mutating func abandon() async {
        channel.flush()
        try? await pending?.get()  // The connection is closed even if this fails.
    }
}

/// A slice of a media file that is being sent.
///
/// The slice owns the descriptor. Therefore, the file handle releases it at the end without closing it.
final class SentSlice: Sendable {
    private let slice: MediaSlice
    private let handle: NIOFileHandle

    /// - Throws: ``RangeTooLarge`` if the slice ends at an offset that `FileRegion` can't hold. The caller then still
    ///   owns the descriptor.
    init(_ slice: MediaSlice, _ descriptor: Int32) throws(RangeTooLarge) {
        guard Self.canHold(slice.range) else { throw RangeTooLarge(range: slice.range) }
        self.slice = slice
        handle = NIOFileHandle(_deprecatedTakingOwnershipOfDescriptor: descriptor)
    }

    /// Returns whether a `FileRegion` can hold these offsets.
    ///
    /// A `FileRegion` stores the position of the next byte in 56 bits. If the position is larger, a debug build of NIO
    /// crashes, and a release build sends the wrong bytes.
    static func canHold(_ range: Range<Int64>) -> Bool { range.lowerBound >= 0 && range.upperBound < 1 << 56 }

    /// The error for a range whose end `FileRegion` can't represent.
    struct RangeTooLarge: Error, CustomStringConvertible {
        var range: Range<Int64>

        var description: String { "bytes up to \(range.upperBound) can't be sent: the limit is offset 2^56 - 1" }
    }

    /// The whole slice, as a channel writes it.
    var data: IOData { data(0..<slice.count) }

    /// Returns a part of the slice.
    func data(_ part: Range<Int>) -> IOData {
        let start = Int(slice.fileOffset)
        return .fileRegion(
            FileRegion(fileHandle: handle, readerIndex: start + part.lowerBound, endIndex: start + part.upperBound))
    }

    /// Releases the descriptor, so that the handle does not close it.
    func release() { _ = try? handle.takeDescriptorOwnership() }  // It fails only if the descriptor was released.
}

/// A cork: until it is released, a connection sends only full packets (`TCP_CORK` in tcp(7) of Linux).
///
/// The head of a response is then sent together with the first bytes of its body, so that the client wakes up only
/// once. Use the cork on the event loop of the channel. Release it in the same function call, because a partly filled
/// packet waits until then. On other systems, the type does nothing.
struct TCPCork {
    #if os(Linux)
    private let options: (any NIOSynchronousChannelOptions)?

    init(_ channel: any Channel) {
        options = channel.syncOptions
        set(1)
    }

    func release() { set(0) }

    private func set(_ value: Int) {
        // If the option can't be set, either packets are sent before they are full, or the client has closed the
        // connection.
        try? options?.setOption(.tcpOption(.init(rawValue: TCP_CORK)), value: value)
    }
    #else
    init(_ channel: any Channel) {}

    func release() {}
    #endif
}
#endif

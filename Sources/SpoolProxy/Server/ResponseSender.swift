#if Proxy
import HTTPTypes
import NIOCore
import Spool
import SpoolStorage
import SpoolStreams

/// A sender of one response over a connection, at the speed of the client.
///
/// Bytes of media files are sent with `sendfile`, and all other bytes through buffers. Each piece is read while the
/// previous one is being sent. If the client stops receiving, the reader stops as well, and so does the transfer.
struct ResponseSender: Sendable {
    let channel: any Channel
    let progress: SendProgress
    /// The object that waits if the origin stops sending a body, or `nil` if the response is ended instead.
    var retryWaiter: OriginRetryWaiter?

    /// Sends the head and the body.
    func send(_ response: Response, _ head: ResponseHead, _ framing: Response.Framing) async -> SendOutcome {
        // The memory of a manifest is counted until the client has received the last byte.
        defer { withExtendedLifetime(response.memory) {} }
        var isPaced = false
        if !response.isStored, case .media = response.body { isPaced = true }
        var writer = PieceWriter(
            channel: channel, progress: progress, isChunked: framing == .chunked, isPaced: isPaced)
        var buffer = channel.allocator.buffer(capacity: 512)
        head.encode(into: &buffer)
        writer.start(buffer)
        if framing == .none || framing == .length(0) { return await writer.end() }
        if !response.isStored { writer.flush() }
        do {
            try await send(response, &writer, inPieces: response.isStored ? Self.storedPiece : Self.piece)
            return await writer.end()
        } catch {
            await writer.abandon()
            return .cut(by: error)
        }
    }

    /// The maximum size of a piece of bytes that must be fetched. A small size avoids fetching bytes that the client
    /// does not receive.
    private static let piece: Int64 = 256 << 10
    /// The maximum size of a piece of stored bytes. Large pieces are more efficient.
    private static let storedPiece: Int64 = 1 << 20
    /// The time within which a client must receive the end of an endless stream.
    private static let endTime = TimeAmount.seconds(5)

    private func send(_ response: Response, _ writer: inout PieceWriter, inPieces size: Int64) async throws {
        switch response.body {
        case .none: break
        case .bytes(let bytes): try await writer.write(bytes)
        case .media(let reader, let count):
            try await send(reader, count, &writer, inPieces: size, closesIfManifest: response.closesIfManifest)
        case .upstream(let body, let count):
            try await send(body, count, &writer, closesIfManifest: response.closesIfManifest)
        case .stream(let stream): try await send(stream, &writer)
        case .parts(let parts, _):
            for part in parts {
                switch part {
                case .text(let text): try await writer.write(ByteBuffer(string: text))
                case .media(let reader, let count, let version):
                    guard let version, try await reader.response().version == version else {
                        throw BodyLengthMismatch(description: "the version changed between two parts")
                    }
                    try await send(reader, count, &writer, inPieces: size)
                }
            }
        }
    }

    /// The error for a body whose length differs from the length in its head.
    private struct BodyLengthMismatch: Error, CustomStringConvertible {
        var description: String
    }

    private func send(
        _ reader: MediaReader, _ count: Int64?, _ writer: inout PieceWriter, inPieces size: Int64,
        closesIfManifest: Bool = false
    ) async throws {
        defer { reader.cancel() }
        var left = count ?? .max
        var isFirst = true
        var manifestGuard = ManifestGuard(isActive: false)
        var waiting = try await Waiting(retryWaiter, reader)
        while left > 0, let chunk = try await waiting.next(of: reader, upTo: size) {
            guard chunk.count <= left else {
                throw BodyLengthMismatch(description: "the body is longer than its Content-Length")
            }
            left -= Int64(chunk.count)
            if isFirst {
                manifestGuard = ManifestGuard(isActive: closesIfManifest && chunk.offset == 0)
                isFirst = false
            }
            if manifestGuard.isActive {
                let bytes = try chunk.withUnsafeBytes { try manifestGuard.examine($0, isLast: left == 0) }
                if bytes.readableBytes > 0 { try await writer.write(bytes) }
            } else {
                try await writer.write(chunk)
            }
        }
        if manifestGuard.isActive { try await writer.write(manifestGuard.end()) }
        if count != nil, left > 0 {
            throw BodyLengthMismatch(description: "the body is \(left) bytes shorter than its Content-Length")
        }
    }

    /// An iterator over the chunks of a reader, which waits if its origin is unavailable.
    private struct Waiting {
        private let retryWaiter: OriginRetryWaiter?
        private let version: GenerationIdentifier?
        private var count = OriginRetryWaiter.Count()
        private var position: Int64?
        private var needsCheck = false

        init(_ retryWaiter: OriginRetryWaiter?, _ reader: MediaReader) async throws {
            self.retryWaiter = retryWaiter
            guard retryWaiter != nil else {
                version = nil
                return
            }
            version = try await reader.response().version
            position = reader.position
        }

        mutating func next(of reader: MediaReader, upTo size: Int64) async throws -> MediaChunk? {
            while true {
                do {
                    if needsCheck, try await reader.response().version != version {
                        throw BodyLengthMismatch(description: "the version changed while the origin was unavailable")
                    }
                    needsCheck = false
                    let chunk = try await reader.next(upTo: size)
                    if let chunk { (position, count) = (chunk.offset + Int64(chunk.count), OriginRetryWaiter.Count()) }
                    return chunk
                } catch let error as CacheError {
                    guard let retryWaiter, let position else { throw error }
                    try await retryWaiter.wait(after: error, &count)
                    reader.seek(to: position)
                    needsCheck = true
                }
            }
        }
    }

    private func send(_ stream: BodyStream, _ writer: inout PieceWriter) async throws {
        var left = stream.count ?? .max
        stream.onStart?({ [channel] in channel.close(mode: .all, promise: nil) })
        defer {
            // Otherwise, a client that does not receive any bytes could keep the connection open indefinitely.
            if stream.isEndless {
                channel.eventLoop.scheduleTask(in: Self.endTime) { [channel] in
                    channel.close(mode: .all, promise: nil)
                }
            }
        }
        try await stream.run { bytes in
            left -= Int64(bytes.readableBytes)
            guard left >= 0 else {
                throw BodyLengthMismatch(description: "the body is longer than its Content-Length")
            }
            try await writer.write(bytes)
        }
        if stream.count != nil, left > 0 {
            throw BodyLengthMismatch(description: "the body is \(left) bytes shorter than its Content-Length")
        }
    }

    private func send(
        _ body: UpstreamBody, _ count: Int64?, _ writer: inout PieceWriter, closesIfManifest: Bool
    ) async throws {
        var left = count ?? .max
        var manifestGuard = ManifestGuard(isActive: closesIfManifest)
        for try await chunk in body {
            let taken = Int(min(left, Int64(chunk.count)))
            left -= Int64(taken)
            let buffer = try chunk.withUnsafeBytes { bytes in
                let bytes = UnsafeRawBufferPointer(rebasing: bytes.prefix(taken))
                return manifestGuard.isActive
                    ? try manifestGuard.examine(bytes, isLast: left == 0) : ByteBuffer(bytes: bytes)
            }
            if buffer.readableBytes > 0 { try await writer.write(buffer) }
            if left == 0 { break }
        }
        if manifestGuard.isActive { try await writer.write(manifestGuard.end()) }
        if count != nil, left > 0 {
            throw BodyLengthMismatch(description: "the body is \(left) bytes shorter than its Content-Length")
        }
    }
}
#endif

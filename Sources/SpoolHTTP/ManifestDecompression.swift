import Foundation
import HTTPRanges
import HTTPTypes
import Spool

#if AsyncHTTPClient && (os(Linux) || os(macOS))
import NIOCore
import NIOEmbedded
import NIOHTTP1
import NIOHTTPCompression
#endif

/// The decompression of playlists and MPDs that an origin compresses even though the request does not accept
/// compression.
///
/// The references in a manifest can only be read and rewritten in the uncompressed text. Compressed media is not
/// decompressed, because its ranges would no longer be those of the origin.
enum ManifestDecompression {
    /// The maximum size of a decompressed manifest, in bytes.
    static let maximumBytes = 16 << 20
    /// The maximum size of a compressed manifest, in bytes.
    static let maximumCompressedBytes = 4 << 20
    /// The memory for all compressed manifests, because many origins may send them slowly.
    static let memory = ManifestMemory(limit: 64 << 20)

    /// Returns a response with its manifest decompressed, or any other response unchanged.
    ///
    /// The result has a weak entity tag, because its bytes are not those that the origin identifies (RFC 9110 §8.8.3).
    ///
    /// - Throws: ``UpstreamError`` with code `malformedResponse` if the body is invalid or too large, or with code
    ///   `other` if the limit for all manifests is reached. Errors from reading the body.
    static func decompressed(_ response: UpstreamResponse, to request: UpstreamRequest) async throws -> UpstreamResponse
    {
        let fields = response.head.headerFields
        guard request.method == .get, request.headerFields[.acceptEncoding] == "identity", response.head.status == .ok,
            let coding = fields[.contentEncoding]?.lowercased(), ["gzip", "x-gzip", "deflate"].contains(coding),
            ManifestHint.isInFields(fields) || ManifestHint.isInPath(response.url.path)
        else { return response }
        let name = response.url.nameForMessages
        let share = ManifestMemory.Share(of: memory)
        var received = Data()
        for try await chunk in response.body {
            chunk.withUnsafeBytes { received.append(contentsOf: $0) }
            let limit = isCompressed(received) ? maximumCompressedBytes : maximumBytes
            guard received.count <= limit else {
                throw UpstreamError(
                    .malformedResponse, "\(name) sent a manifest that is too large (limit: \(limit) bytes)")
            }
            try resize(share, to: received.count, name: name)
        }
        var result = response
        result.body = UpstreamBody(Pieces(bytes: [received], memory: share))
        if isCompressed(received) {
            guard let pieces = try inflate(received, name: name) else { return result }
            try resize(share, to: pieces.reduce(received.count) { $0 + $1.count }, name: name)
            result.body = UpstreamBody(Pieces(bytes: pieces, memory: share))
        } else if !isText(received) {
            return result
        }
        // URLSession decompresses every body itself, but keeps the fields that describe the compressed one.
        var changed = EndToEndFields.withoutDigests(fields)
        for name in [HTTPField.Name.contentEncoding, .contentLength, .acceptRanges] { changed[name] = nil }
        changed[.eTag] = fields[.eTag].flatMap(EntityTag.init(parsing:)).flatMap {
            EntityTag(value: $0.value, isWeak: true)?.text
        }
        result.head.headerFields = changed
        return result
    }

    /// A body in memory.
    private struct Pieces: AsyncSequence, Sendable {
        let bytes: [Data]
        let memory: ManifestMemory.Share

        func makeAsyncIterator() -> Iterator { Iterator(rest: bytes[...], memory: memory) }

        struct Iterator: AsyncIteratorProtocol {
            var rest: ArraySlice<Data>
            let memory: ManifestMemory.Share

            mutating func next() async -> Data? { rest.popFirst() }
        }
    }

    private static func resize(_ share: ManifestMemory.Share, to bytes: Int, name: String) throws(UpstreamError) {
        guard share.resizeIfPossible(to: bytes) else {
            throw UpstreamError(.other, "\(name): too many compressed manifests are being received")
        }
    }

    /// Returns whether the first byte is that of a playlist or an XML document.
    private static func isText(_ bytes: Data) -> Bool {
        bytes.first.map { "#<\u{FEFF} \t\r\n".utf8.contains($0) } ?? true
    }

    /// Returns whether the first bytes are those of a gzip file (RFC 1952 §2.3.1) or a zlib stream (RFC 1950 §2.2).
    private static func isCompressed(_ bytes: Data) -> Bool {
        guard let first = bytes.first, let second = bytes.dropFirst().first else { return false }
        if first == 0x1F { return second == 0x8B }
        return first & 0x0F == 8 && (UInt16(first) << 8 | UInt16(second)) % 31 == 0
    }

    #if AsyncHTTPClient && (os(Linux) || os(macOS))
    /// Returns the decompressed bytes.
    private static func inflate(_ bytes: Data, name: String) throws(UpstreamError) -> [Data]? {
        // The library offers decompression only as a channel handler.
        let channel = EmbeddedChannel()
        // A channel that is not closed is never released. All errors have already been thrown.
        defer { _ = try? channel.finish(acceptAlreadyClosed: true) }
        do {
            try channel.pipeline.syncOperations.addHandler(NIOHTTPResponseDecompressor(limit: .size(maximumBytes)))
            // The decompressor recognizes both formats by their first bytes.
            let head = HTTPResponseHead(version: .http1_1, status: .ok, headers: ["Content-Encoding": "gzip"])
            try channel.writeInbound(HTTPClientResponsePart.head(head))
            try channel.writeInbound(HTTPClientResponsePart.body(ByteBuffer(bytes: bytes)))
            try channel.writeInbound(HTTPClientResponsePart.end(nil))
            var pieces: [Data] = []
            while let part = try channel.readInbound(as: HTTPClientResponsePart.self) {
                if case .body(let piece) = part { pieces.append(Data(piece.readableBytesView)) }
            }
            return pieces
        } catch {
            throw UpstreamError(.malformedResponse, "\(name) sent a manifest that can't be decompressed: \(error)")
        }
    }
    #else
    /// Returns `nil`, because URLSession, the only transport in this build, decompresses bodies.
    private static func inflate(_ bytes: Data, name: String) throws(UpstreamError) -> [Data]? { nil }
    #endif
}

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

/// The decompression of playlists and MPDs that an origin compresses even though the request does not accept it.
///
/// The references in a manifest can only be read and rewritten in the uncompressed text. Compressed media is not
/// decompressed, because its ranges would no longer be those of the origin.
enum ManifestDecompression {
    /// The maximum size of a manifest in bytes, both compressed and decompressed.
    static let maximumBytes = 16 << 20

    /// Returns a response with its manifest decompressed, or any other response unchanged.
    ///
    /// The result has a weak entity tag, because its bytes are not those that the origin identifies (RFC 9110 §8.8.3).
    ///
    /// - Throws: ``UpstreamError`` with code `malformedResponse` if the body is invalid or too large, and errors from
    ///   reading the body.
    static func decompressed(_ response: UpstreamResponse, to request: UpstreamRequest) async throws -> UpstreamResponse
    {
        let fields = response.head.headerFields
        guard request.method == .get, request.headerFields[.acceptEncoding] == "identity", response.head.status == .ok,
            let coding = fields[.contentEncoding]?.lowercased(), ["gzip", "x-gzip", "deflate"].contains(coding),
            fields.indicateManifest(at: response.url.path)
        else { return response }
        let name = response.url.nameForMessages
        var received = Data()
        for try await chunk in response.body {
            chunk.withUnsafeBytes { received.append(contentsOf: $0) }
            guard received.count <= maximumBytes else {
                throw UpstreamError(
                    .malformedResponse, "\(name) sent a compressed manifest of more than \(maximumBytes) bytes")
            }
        }
        var result = response
        result.body = upstreamBody(of: [received])
        // URLSession decompresses every body itself, but keeps the fields that describe the compressed one.
        if isCompressed(received) {
            guard let body = try inflate(received, name: name) else { return result }
            result.body = upstreamBody(of: body)
        }
        var changed = EndToEndFields.withoutDigests(fields)
        for name in [HTTPField.Name.contentEncoding, .contentLength, .acceptRanges] { changed[name] = nil }
        changed[.eTag] = fields[.eTag].flatMap(EntityTag.init(parsing:)).flatMap {
            EntityTag(value: $0.value, isWeak: true)?.text
        }
        result.head.headerFields = changed
        return result
    }

    private static func upstreamBody(of pieces: [Data]) -> UpstreamBody {
        UpstreamBody(
            AsyncStream<Data> { stream in
                for piece in pieces { stream.yield(piece) }
                stream.finish()
            })
    }

    /// Returns whether the first bytes are those of a gzip file (RFC 1952 §2.3.1) or of a zlib stream (RFC 1950 §2.2).
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
            _ = try channel.finish()
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

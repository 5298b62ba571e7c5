import Foundation
import HTTPTypes
import Spool

/// An `Upstream` without a network. At each URL, it serves a resource that repeats the same 64 KiB, and supports
/// ranges.
struct MemoryOrigin: Upstream {
    let length: Int64

    init(length: Int64) { self.length = length }

    func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
        let range = try RequestedRange(request, of: length)
        return UpstreamResponse(
            head: range.head, url: request.url, body: UpstreamBody(PatternPieces(range.bytes, size: 65_536)))
    }
}

/// The requested bytes, and the headers of the response.
struct RequestedRange {
    /// The half-open range, clipped to the resource.
    var bytes: Range<Int64>
    var head: HTTPResponse

    /// - Throws: `UpstreamError` unless the request has a range `bytes=first-last`, as the engine's requests do.
    init(_ request: UpstreamRequest, of length: Int64) throws {
        let text = request.headerFields[.range] ?? ""
        guard text.hasPrefix("bytes=") else { throw UpstreamError(.other, "a request without a range") }
        let bounds = text.dropFirst(6).split(separator: "-").compactMap { Int64($0) }
        guard bounds.count == 2, bounds[0] <= bounds[1], bounds[0] < length else {
            throw UpstreamError(.other, "a request for \(text)")
        }
        bytes = bounds[0]..<min(bounds[1] + 1, length)
        head = HTTPResponse(status: .partialContent)
        head.headerFields[.contentRange] = "bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/\(length)"
        head.headerFields[.contentLength] = "\(bytes.upperBound - bytes.lowerBound)"
        head.headerFields[.eTag] = "\"1\""
    }
}

/// A range of the pattern, in pieces of the same size. The last piece may be shorter.
struct PatternPieces: AsyncSequence, Sendable {
    private static let pattern = Data((0..<65_536).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) })

    private let range: Range<Int64>
    private let piece: Data

    /// - Parameter size: The size of a piece in bytes, at most 65,536.
    init(_ range: Range<Int64>, size: Int) {
        self.range = range
        piece = Self.pattern.prefix(size)
    }

    func makeAsyncIterator() -> Iterator { Iterator(range: range, piece: piece) }

    struct Iterator: AsyncIteratorProtocol {
        var range: Range<Int64>
        let piece: Data

        mutating func next() async -> Data? {
            guard !range.isEmpty else { return nil }
            let count = Swift.min(piece.count, Int(range.upperBound - range.lowerBound))
            range = range.lowerBound + Int64(count)..<range.upperBound
            return count == piece.count ? piece : piece.prefix(count)
        }
    }
}

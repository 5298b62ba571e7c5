import Foundation
import HTTPTypes
import Spool
import SpoolTesting
import Synchronization

/// An origin in memory that serves a different pattern of the same length for each path, without delay.
final class PatternUpstream: Upstream {
    let length: Int64
    private let counts = Mutex((requests: 0, bytes: Int64(0)))

    init(length: Int64) { self.length = length }

    var requests: Int { counts.withLock { $0.requests } }
    var bytesSent: Int64 { counts.withLock { $0.bytes } }

    /// Returns the pattern of bytes at a URL.
    func pattern(of url: URL) -> PatternBytes {
        PatternBytes(seed: url.path.utf8.reduce(7) { ($0 &* 31) &+ UInt64($1) }, length: length)
    }

    func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
        var fields: HTTPFields = [.eTag: "\"a\"", .contentType: "audio/mpeg"]
        var range = 0..<length
        var status = HTTPResponse.Status.ok
        if let asked = request.headerFields[.range]?.dropFirst("bytes=".count).split(separator: "-"),
            let first = asked.first
        {
            let lower = Int64(first) ?? 0
            range = lower..<min(asked.count > 1 ? (Int64(asked[1]) ?? length) + 1 : length, length)
            status = .partialContent
            fields[.contentRange] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length)"
        }
        fields[.contentLength] = "\(range.upperBound - range.lowerBound)"
        counts.withLock { $0.requests += 1 }
        let body = PatternBody(pattern: pattern(of: request.url), range: range) { count in
            self.counts.withLock { $0.bytes += Int64(count) }
        }
        let head = HTTPResponse(status: status, headerFields: fields)
        return UpstreamResponse(head: head, url: request.url, body: UpstreamBody(body))
    }
}

/// A body that contains a range of a pattern, in pieces that are not aligned to blocks.
private struct PatternBody: AsyncSequence, Sendable {
    let pattern: PatternBytes
    let range: Range<Int64>
    let sent: @Sendable (Int) -> Void

    func makeAsyncIterator() -> Iterator { Iterator(body: self, position: range.lowerBound) }

    struct Iterator: AsyncIteratorProtocol {
        let body: PatternBody
        var position: Int64

        mutating func next() async throws -> [UInt8]? {
            try Task.checkCancellation()
            guard position < body.range.upperBound else { return nil }
            let part = position..<Swift.min(position + 50_001, body.range.upperBound)
            position = part.upperBound
            body.sent(part.count)
            return body.pattern.bytes(part)
        }
    }
}

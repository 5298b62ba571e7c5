import Foundation
import HTTPTypes
import Spool
import Synchronization

/// An origin whose responses are returned by a closure, and that records the requests.
final class RespondingUpstream: Upstream {
    struct Answer: Sendable {
        var status = 200
        var fields: HTTPFields = [:]
        var body = Data()
    }

    private let answer: @Sendable (UpstreamRequest) throws -> Answer
    private let asked = Mutex<[UpstreamRequest]>([])

    init(_ answer: @escaping @Sendable (UpstreamRequest) throws -> Answer) { self.answer = answer }

    var requests: [UpstreamRequest] { asked.withLock { $0 } }

    func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
        asked.withLock { $0.append(request) }
        let answer = try answer(request)
        let head = HTTPResponse(status: .init(code: answer.status), headerFields: answer.fields)
        return UpstreamResponse(head: head, url: request.url, body: UpstreamBody(Pieces(rest: answer.body)))
    }

    /// Returns the response that an origin with range support sends.
    static func media(_ bytes: Data, _ request: UpstreamRequest) -> Answer {
        var fields: HTTPFields = [.contentType: "video/mp4", .eTag: "\"1\"", .acceptRanges: "bytes"]
        guard let text = request.headerFields[.range]?.dropFirst("bytes=".count) else {
            return Answer(fields: fields, body: bytes)
        }
        let ends = text.split(separator: "-").compactMap { Int($0) }
        let range = ends[0]..<min(bytes.count, (ends.count > 1 ? ends[1] : .max - 1) + 1)
        fields[.contentRange] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(bytes.count)"
        return Answer(status: 206, fields: fields, body: bytes[range])
    }
}

private struct Pieces: AsyncSequence, Sendable {
    let rest: Data

    struct Iterator: AsyncIteratorProtocol {
        var rest: Data

        mutating func next() async -> Data? {
            guard !rest.isEmpty else { return nil }
            defer { rest = rest.dropFirst(16 << 10) }
            return Data(rest.prefix(16 << 10))
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(rest: rest) }
}

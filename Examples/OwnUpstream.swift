import HTTPTypes
import SpoolAVFoundation

/// A transport for media that is not served over HTTP. It may respond to a range request with the whole resource.
struct ArchiveUpstream: Upstream {
    let files: [String: Data]

    func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
        guard let data = files[request.url.path] else {
            return UpstreamResponse(head: HTTPResponse(status: .notFound), url: request.url, body: UpstreamBody(of: []))
        }
        let fields: HTTPFields = [.contentLength: "\(data.count)", .contentType: "audio/mpeg", .eTag: "\"1\""]
        return UpstreamResponse(
            head: HTTPResponse(status: .ok, headerFields: fields), url: request.url, body: UpstreamBody(of: [data]))
    }
}

extension UpstreamBody {
    nonisolated init(of pieces: [Data]) {
        let (stream, continuation) = AsyncStream.makeStream(of: Data.self)
        for piece in pieces { continuation.yield(piece) }
        continuation.finish()
        self.init(stream)
    }
}

import Foundation
import HTTPRanges
import HTTPTypes
import SpoolStorage

/// A transport that responds with the bytes of a file, and with the headers that the origin sent for the file.
struct FileUpstream: Upstream {
    private static let chunkSize: Int64 = 256 << 10

    private let file: ImportedFile
    private let head: OriginHead?
    private let executor: BlockingExecutor

    init(_ file: ImportedFile, head: OriginHead?, executor: BlockingExecutor) {
        self.file = file
        self.head = head
        self.executor = executor
    }

    func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
        var fields = head?.fields ?? HTTPFields()
        for name in [HTTPField.Name.contentLength, .contentRange, .transferEncoding, .contentEncoding] {
            fields[name] = nil
        }
        fields[.acceptRanges] = "bytes"
        var status = HTTPResponse.Status.ok
        var body = 0..<file.length
        if let range = range(of: request, fields) {
            status = .partialContent
            body = range
            fields[.contentRange] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(file.length)"
        }
        fields[.contentLength] = String(body.upperBound - body.lowerBound)
        return UpstreamResponse(
            head: HTTPResponse(status: status, headerFields: fields), url: request.url,
            body: UpstreamBody(FileBody(file: file, range: body, chunkSize: Self.chunkSize, executor: executor)))
    }

    /// Returns the requested range of this version, or `nil` to send the whole file, which is a valid response to any
    /// request.
    private func range(of request: UpstreamRequest, _ fields: HTTPFields) -> Range<Int64>? {
        if let condition = request.headerFields[.ifRange], condition != fields[.eTag],
            condition != fields[.lastModified]
        {
            return nil
        }
        guard let header = RangeHeader(fields: request.headerFields),
            case .partial(let ranges) = header.resolve(length: file.length), ranges.count == 1
        else { return nil }
        return ranges[0]
    }
}

/// The bytes of a file, which are read in chunks when they are requested.
private struct FileBody: AsyncSequence, Sendable {
    let file: ImportedFile
    let range: Range<Int64>
    let chunkSize: Int64
    let executor: BlockingExecutor

    struct Iterator: AsyncIteratorProtocol {
        let body: FileBody
        var offset: Int64

        mutating func next() async throws -> Data? {
            guard offset < body.range.upperBound else { return nil }
            let part = offset..<Swift.min(body.range.upperBound, offset + body.chunkSize)
            offset = part.upperBound
            return try await body.executor.run(in: .background) { [file = body.file] in try file.read(part) }
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(body: self, offset: range.lowerBound) }
}

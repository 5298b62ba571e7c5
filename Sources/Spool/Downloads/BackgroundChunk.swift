import ByteRanges
import Foundation
import HTTPRanges
import HTTPTypes
import SpoolStorage
import Synchronization

/// A range of one version of a resource that a background session fetches. The identifier of the chunk is sufficient to
/// recognize the received file after a relaunch.
struct BackgroundChunk: Codable, Hashable, Sendable {
    private var keyHash: String
    private var lower: Int64
    private var upper: Int64
    /// The length of the whole resource, in bytes.
    private(set) var length: Int64
    /// The strong validator of the version, as it is sent in `If-Range`.
    private(set) var validator: String

    init(key: CacheKey, range: Range<Int64>, length: Int64, validator: String) {
        keyHash = key.hash
        (lower, upper) = (range.lowerBound, range.upperBound)
        self.length = length
        self.validator = validator
    }

    /// Creates a chunk from the text of ``identifier``. Returns `nil` if the text has a different format or contains
    /// invalid values.
    init?(identifier: String) {
        // Transfers that another build started may have identifiers in a different format.
        guard let chunk = try? JSONDecoder().decode(Self.self, from: Data(identifier.utf8)),  // A different format.
            chunk.lower >= 0, chunk.lower < chunk.upper, chunk.upper <= chunk.length,
            chunk.length <= Block.offsetLimit, CacheKey(rawValue: chunk.keyHash) != nil
        else { return nil }
        self = chunk
    }

    /// The text that identifies the chunk's transfer in the session.
    var identifier: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let text = try? encoder.encode(self)  // Strings and numbers can always be encoded.
        return text.map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    var key: CacheKey { CacheKey(hash: keyHash) }

    var range: Range<Int64> { lower..<upper }

    /// Returns the transfer request for the chunk.
    ///
    /// - Parameter request: A request for the resource, without a range.
    func request(_ request: UpstreamRequest, under conditions: PreloadConditions?) -> BackgroundTransferRequest {
        var fields = request.headerFields
        fields[.range] = RangeHeader.text(for: range)
        fields[.ifRange] = validator
        return BackgroundTransferRequest(
            identifier: identifier, url: request.url, headerFields: fields, conditions: conditions)
    }

    /// Returns the ranges to fetch, in parts of at most `size` bytes: the blocks with missing bytes, except those that
    /// are being fetched.
    ///
    /// - Parameters:
    ///   - stored: The stored ranges.
    ///   - running: The ranges that are being fetched.
    ///   - size: The maximum size of a part, in bytes, rounded down to a multiple of the block size, but at least one
    ///     block.
    static func ranges(length: Int64, stored: ByteRangeSet, running: ByteRangeSet, size: Int64) -> [Range<Int64>] {
        var missing = ByteRangeSet()
        for range in stored.missingRanges(in: 0..<length) {
            // A block is fetched as a whole, because its stored part may be lost if the process is killed.
            let end = min(Block.roundUp(range.upperBound), length)
            missing.insert(Block.roundDown(range.lowerBound)..<end)
        }
        missing.subtract(running)
        let size = max(Block.roundDown(size), Block.size)
        return missing.flatMap { range in
            stride(from: range.lowerBound, to: range.upperBound, by: Int64.Stride(size)).map { lower in
                lower..<(range.upperBound - lower > size ? lower + size : range.upperBound)
            }
        }
    }
}

/// A file that a background session has received for a chunk, along with its response.
struct ReceivedChunk: Sendable {
    let chunk: BackgroundChunk
    /// The response, with the size of the file as its `Content-Length`.
    let head: HTTPResponse
    let file: any StoredFile
    let byteCount: Int64

    /// Opens the file. This call blocks.
    ///
    /// - Throws: `CacheError` with code `.storage` if the file can't be read.
    init(_ chunk: BackgroundChunk, _ head: HTTPResponse, at path: String) throws {
        file = try SystemFileSystem().openFile(path, .read)
        byteCount = try file.size()
        self.chunk = chunk
        var head = head
        head.headerFields[.contentLength] = String(byteCount)
        head.headerFields[.transferEncoding] = nil
        self.head = head
    }

    /// Checks that the response contains exactly the requested range of the stored version.
    ///
    /// - Throws: `CacheError`, whose message states the cause, without the URL.
    func check(against stored: StoredVersion) throws(CacheError) {
        let status = head.status.code
        guard status == 206 else {
            let isWhole = (200...299).contains(status)
            throw isWhole
                ? CacheError(.malformedResponse, "the origin sent the whole resource with status \(status)")
                : CacheError(.originErrorStatus, "the origin responded with status \(status)", status: status)
        }
        let stated = head.headerFields.parsedContentRange
        guard stated == ContentRange(range: chunk.range, length: chunk.length) else {
            // A different length proves that this is a different version, even without a strong validator from the
            // origin.
            let isChanged = stated?.length.map { $0 != chunk.length } ?? false
            let text =
                stated.map { "Content-Range is “\($0.text)”, but that range was not requested" }
                ?? "Content-Range is missing or malformed"
            throw CacheError(isChanged ? .resourceChanged : .malformedResponse, text)
        }
        guard byteCount == chunk.range.upperBound - chunk.range.lowerBound else {
            let expected = chunk.range.upperBound - chunk.range.lowerBound
            throw CacheError(
                .incomplete, "the received file contains \(byteCount.grouped) instead of \(expected.counted("byte"))")
        }
        let decision = PartialResponse.evaluate(
            head, requestedStart: chunk.range.lowerBound, requestedEnd: chunk.range.upperBound, stored: stored,
            rule: .strong)
        switch decision {
        case .store(let placement) where placement.offset == chunk.range.lowerBound && placement.discrepancy == nil:
            return
        case .refuse(let refusal):
            throw CacheError(.malformedResponse, "the origin responded with status \(refusal.reason)")
        default: throw CacheError(.resourceChanged, "the origin sent a different or unidentified version")
        }
    }
}

/// A transport that responds with the bytes of a received file instead of requesting them from the origin. It supports
/// only requests for the version and range of that file.
struct ReceivedChunkUpstream: Upstream {
    private static let pieceSize: Int64 = 256 << 10

    let received: ReceivedChunk
    let executor: BlockingExecutor

    func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
        let range = received.chunk.range
        let header = RangeHeader(fields: request.headerFields)
        guard request.headerFields[.ifRange] == received.chunk.validator,
            case .partial(let asked)? = header?.resolve(length: received.chunk.length),
            asked.count == 1, range.contains(asked[0].lowerBound)
        else { throw UpstreamError(.other, "the received file does not contain the requested bytes") }
        let part = asked[0].clamped(to: range)
        var head = received.head
        head.headerFields[.contentRange] = ContentRange(range: part, length: received.chunk.length).text
        head.headerFields[.contentLength] = String(part.upperBound - part.lowerBound)
        let offset = Mutex(part.lowerBound)
        let pieces = AsyncThrowingStream<Data, any Error>(unfolding: {
            let next = offset.withLock { lower in
                let piece = lower..<min(part.upperBound, lower + Self.pieceSize)
                lower = piece.upperBound
                return piece
            }
            return next.isEmpty ? nil : try await read(next)
        })
        return UpstreamResponse(head: head, url: request.url, body: UpstreamBody(pieces))
    }

    private func read(_ range: Range<Int64>) async throws -> Data {
        try await executor.run(in: .background) {
            var data = Data(count: range.count)
            let start = range.lowerBound - received.chunk.range.lowerBound
            let count = try data.withUnsafeMutableBytes { try received.file.read(into: $0, at: start) }
            guard count == range.count else { throw UpstreamError(.other, "the received file was truncated") }
            return data
        }
    }
}

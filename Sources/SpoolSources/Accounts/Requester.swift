public import Foundation
import HTTPTypes
public import Spool

/// Asks a service questions on behalf of an account: what a folder holds, where a file can be had.
///
/// Sends the account's fields; refused, it takes fresh ones, once.
public struct Requester: Sendable {
    /// The most that a service may respond with, in bytes.
    static let limit = 16 << 20

    private let share: SharedResolution<HeaderSource.Fields>.Share

    init(_ share: SharedResolution<HeaderSource.Fields>.Share) { self.share = share }

    /// Sends one request and returns the whole body of a response with a status of success.
    ///
    /// - Parameters:
    ///   - request: The request; the account's fields go over its own.
    ///   - content: What is sent along, with its `Content-Length` among the request's fields.
    ///   - upstream: What sends it.
    /// - Throws: ``SourceError`` for any other status, or more than 16 MiB; `UpstreamError` where no response came; and
    ///   what the account throws.
    public func data(
        for request: UpstreamRequest, sending content: Data? = nil, over upstream: any Upstream
    ) async throws -> Data {
        var reason = MediaSource.Reason.first
        while true {
            var sent = request
            if let content { sent.body = UpstreamBody(OneChunk(content)) }
            for field in try await share.value(reason).headerFields { sent.headerFields[field.name] = field.value }
            let response = try await upstream.open(sent)
            let status = response.head.status
            if status.kind == .successful { return try await body(of: response, address: request.url) }
            guard reason == .first, [401, 403, 407].contains(status.code) else {
                throw SourceError(
                    "\(Self.place(request.url)): the service responded with \(status.code)", status: status.code)
            }
            reason = .refused(status: status.code)
        }
    }

    private func body(of response: UpstreamResponse, address: URL) async throws -> Data {
        var data = Data()
        for try await chunk in response.body {
            guard data.count + chunk.count <= Self.limit else {
                throw SourceError(
                    "\(Self.place(address)): the service responded with more than \(Self.limit >> 20) MiB")
            }
            chunk.withUnsafeBytes { data.append(contentsOf: $0) }
        }
        return data
    }

    static func place(_ url: URL) -> String { MediaSource(url: url).displayAddress }
}

/// A body of one piece.
private struct OneChunk: AsyncSequence, Sendable {
    let data: Data

    init(_ data: Data) { self.data = data }

    struct Iterator: AsyncIteratorProtocol {
        var data: Data?

        mutating func next() async -> Data? {
            defer { data = nil }
            return data
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(data: data) }
}

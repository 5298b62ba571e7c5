public import Foundation
import HTTPTypes
public import Spool

/// A client that sends requests to a service on behalf of an account, such as for a folder's contents or a file's URL.
///
/// The client adds the account's header fields. After a rejection, it resolves new fields and retries once.
public struct AuthenticatedClient: Sendable {
    /// The maximum size of a response, in bytes.
    static let limit = 16 << 20

    private let share: SharedResolution<HeaderProvider.Fields>.Share

    init(_ share: SharedResolution<HeaderProvider.Fields>.Share) { self.share = share }

    /// Sends one request, and returns the whole body of a successful response.
    ///
    /// - Parameters:
    ///   - request: The request. The account's fields override those of the request.
    ///   - content: The request body. Its `Content-Length` must be one of the request's fields.
    ///   - upstream: The transport.
    /// - Throws: ``SourceError`` if the status is not successful or the body exceeds 16 MiB. `UpstreamError` if there
    ///   is no response. Also throws the errors from the account.
    public func data(
        for request: UpstreamRequest, sending content: Data? = nil, over upstream: any Upstream
    ) async throws -> Data {
        var reason = MediaSource.ResolutionReason.initial
        while true {
            var sent = request
            if let content { sent.body = UpstreamBody(OneChunk(content)) }
            for field in try await share.value(reason).headerFields { sent.headerFields[field.name] = field.value }
            let response = try await upstream.open(sent)
            let status = response.head.status
            if status.kind == .successful { return try await body(of: response, address: request.url) }
            guard reason == .initial, [401, 403, 407].contains(status.code) else {
                throw SourceError(
                    "\(Self.place(request.url)): the service responded with status \(status.code)", status: status.code)
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

    static func place(_ url: URL) -> String { MediaSource(url: url).redactedURL }
}

/// A request body that consists of one chunk.
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

/// An error that states why a source could not provide a URL or credentials. Its message is for users, and does not
/// contain secrets.
public struct SourceError: Error, LocalizedError, CustomStringConvertible {
    /// A sentence that names the request, its host and the cause.
    public let message: String
    /// The HTTP status, if the error was caused by a response.
    public let httpStatus: Int?

    init(_ message: String, status: Int? = nil) {
        self.message = message
        self.httpStatus = status
    }

    /// The ``message``.
    public var description: String { message }
    /// The ``message``.
    public var errorDescription: String? { message }
}

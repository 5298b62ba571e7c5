import Foundation
import HTTPRanges
import HTTPTypes

/// The headers of a transfer's response, in the form in which they are evaluated. Some origins send a status, a type or
/// a coding that does not match the body. This extension does not store bytes.
extension Transfer {
    /// Reads the start of the body if the headers do not show whether the body is media. The bytes stay in the body.
    func firstBytes(of response: inout UpstreamResponse, from origin: OriginState) async throws -> [UInt8] {
        let type = response.head.headerFields[values: .contentType].first
        // The body of a live response may not start for a long time, but the headers are needed before then. An error
        // in XML is not live.
        let hasLength = response.head.headerFields.contentLength != nil || type.map(ContentTypes.isXML) == true
        let isMediaStatus = [200, 206].contains(response.head.status.code) && !context.storesAnyResponse
        // Bytes from the middle do not identify the type.
        let range = response.head.headerFields.parsedContentRange?.range
        let startsAtZero = response.head.status != .partialContent || range?.lowerBound == 0
        let isCompressed = ResourceVersion.isCompressed(response.head.headerFields)
        guard isMediaStatus, startsAtZero, isCompressed || hasLength && ContentTypes.isDoubtful(type) else { return [] }
        do {
            let (start, body) = try await response.body.readingStart(ofLength: ContentTypes.signatureLength)
            response.body = body
            return start
        } catch {
            exchange.recordLoss(error, of: origin)
            throw error
        }
    }

    /// Returns whether a response's `Content-Encoding` indicates compression, even though its bytes are uncompressed
    /// media.
    ///
    /// Bytes from the middle of the resource do not show this. They are treated like the bytes from the start, which
    /// have been stored with the same label.
    func isMislabeled(_ head: HTTPResponse, startingWith firstBytes: [UInt8]) -> Bool {
        guard !context.storesAnyResponse, ResourceVersion.isCompressed(head.headerFields) else { return false }
        if !firstBytes.isEmpty { return ContentTypes.isMedia(firstBytes) }
        guard head.status == .partialContent, let stored = resource.generation,
            stored.resourceVersion.contentEncoding == nil, let fields = stored.storedFreshness?.head?.fields
        else { return false }
        return ResourceVersion.isCompressed(fields)
    }

    /// Returns the status and the fields to evaluate.
    ///
    /// Some servers respond with 206 to every request. If no range was requested and the `Content-Range` is not usable,
    /// such a body is the whole resource.
    func head(of response: UpstreamResponse, to request: UpstreamRequest) -> HTTPResponse {
        var head = response.head
        let isPart = head.headerFields.parsedContentRange != nil
        let isMultipart = head.headerFields[.contentType]?.lowercased().hasPrefix("multipart/") == true
        if head.status == .partialContent, request.headerFields[.range] == nil, !isPart, !isMultipart {
            head.status = .ok
        }
        return head
    }

    /// Returns whether a response is successful and has a body, but has neither status 200 nor 206. Players play such
    /// responses. 207 describes several resources, and is therefore not the media. These statuses do not prove that
    /// known media has changed.
    func isOtherSuccess(_ head: HTTPResponse) -> Bool {
        !context.storesAnyResponse && resource.generation?.isError ?? true
            && head.status.kind == .successful && head.headerFields.contentLength != 0
            && ![200, 203, 204, 205, 206, 207].contains(head.status.code)
    }
}

package import HTTPTypes

/// Says whether a response's head tells in one way only what it is and where its body ends (RFC 9112 §6).
///
/// Reads no more than that; what the body is good for is ``PartialResponse``'s to say.
package enum ResponseFraming {
    /// Why nothing can be made of a final response with this head, as the end of a sentence; nil if something can.
    package static func problem(_ head: HTTPResponse) -> String? {
        let fields = head.headerFields
        guard (200...599).contains(head.status.code) else {
            return "responded with the status \(head.status.code), which means nothing"
        }
        let codings = fields[values: .transferEncoding].flatMap { FieldText.elements($0) }
        guard codings.isEmpty || codings.count == 1 && FieldText.equalIgnoringCase(codings[0].utf8, "chunked".utf8)
        else { return "sent a body with a Transfer-Encoding other than chunked" }
        do {
            var lengths = fields
            lengths[.transferEncoding] = nil
            _ = try BodyClaim.contentLength(lengths)
        } catch {
            return "sent a head that contradicts itself: \(error.reason)"
        }
        return nil
    }
}

import SpoolTesting

/// The bytes of a request, and the responses to it that RFC 9110 and 9112 allow.
struct AdversarialRequest: Sendable {
    /// The effect of a request on its connection.
    enum Fate: Sendable {
        /// The server responds and reads the next request.
        case shouldContinue
        /// The server responds, and closes the connection.
        case ends
        /// The body is malformed. The server may send one more response, which may be truncated.
        case breaks
    }

    var bytes: [UInt8]
    var fate = Fate.shouldContinue
    var expected = ExpectedResponse()
}

/// The requirements for a response.
struct ExpectedResponse: Sendable {
    /// The body of a 200 response, or the body whose parts a 206 response contains.
    enum Content: Sendable {
        /// Any body with correct framing.
        case any
        /// The text of the health page.
        case health
        /// A media file from the origin, or ranges of it.
        case media(AdversarialMedia, ranges: [Range<Int64>])
    }

    var statuses: Set<Int> = [200]
    var isHead = false
    /// Whether the client uses HTTP/1.0 and does not support chunked bodies.
    var isOld = false
    var content = Content.any
    /// Whether `100 Continue` may precede the response.
    var mayContinue = false
}

/// A media file from the server's origin.
struct AdversarialMedia: Sendable {
    var index: Int
    var length: Int64

    static let all = [2, 1, 999, 4096, 65_536, 300_001].enumerated().map {
        AdversarialMedia(index: $0.offset, length: $0.element)
    }

    var path: String { "/media-\(index).mp4" }
    var tag: String { "\"tag-\(index)\"" }
    var pattern: PatternBytes { PatternBytes(seed: UInt64(index) + 100, length: length) }
}

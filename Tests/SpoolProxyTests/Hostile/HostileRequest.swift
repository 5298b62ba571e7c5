import SpoolTesting

/// A request as it goes over the wire, and what a server that reads RFC 9110 and 9112 strictly may do with it.
struct HostileRequest: Sendable {
    /// What becomes of the connection.
    enum Fate: Sendable {
        /// It is responded to, and the next request is read.
        case goesOn
        /// It is responded to, and that is the last response.
        case ends
        /// Its body can't be read: there may be a response, which may be cut, and no other.
        case breaks
    }

    var bytes: [UInt8]
    var fate = Fate.goesOn
    var expected = ExpectedResponse()
}

/// What a response has to be.
struct ExpectedResponse: Sendable {
    /// The body of a response with status 200, or with 206 the parts of it that are sent.
    enum Content: Sendable {
        /// Whatever, framed right.
        case any
        /// The server's own words about its health.
        case health
        /// Of one of the origin's media files.
        case media(HostileMedia, ranges: [Range<Int64>])
    }

    var statuses: Set<Int> = [200]
    var isHead = false
    /// Whether the client knows chunks.
    var isOld = false
    var content = Content.any
    /// Whether `100 Continue` may come first.
    var mayContinue = false
}

/// One of the files of the origin behind the server.
struct HostileMedia: Sendable {
    var index: Int
    var length: Int64

    static let all = [2, 1, 999, 4096, 65_536, 300_001].enumerated().map {
        HostileMedia(index: $0.offset, length: $0.element)
    }

    var path: String { "/media-\(index).mp4" }
    var tag: String { "\"tag-\(index)\"" }
    var pattern: PatternBytes { PatternBytes(seed: UInt64(index) + 100, length: length) }
}

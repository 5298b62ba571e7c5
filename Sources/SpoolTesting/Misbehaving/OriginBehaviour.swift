public import SpoolOrigin

/// One way in which an origin strays from the well-kept static file.
///
/// Several combine: `.noLength(.chunked)` with `.cut(after: 1000)` is a chunked body that breaks off. Counts of bytes
/// are counts of body bytes in one response.
#if hasAttribute(nonexhaustive)
@nonexhaustive
#endif
public enum OriginBehaviour: Sendable {
    // MARK: Ranges

    /// Responds 200 with everything, whatever range is asked; says `Accept-Ranges: none`, or nothing when nil is given.
    case ignoresRanges(acceptRanges: String? = "none")
    /// Responds 206 even when no range is asked.
    case partialToEverything
    /// Ignores `If-Range`: responds 206 whatever the condition says.
    case ignoresIfRange
    /// Says `Content-Range` with first and last byte moved by so much, while the body stays what was asked.
    case contentRangeShifted(by: Int64)
    /// Says another total in `Content-Range` (and in a 416's); nil is `*`, unknown.
    case contentRangeTotal(Int64?)
    /// Says this as the whole `Content-Range`, or leaves the field out when nil is given.
    case contentRange(String?)
    /// Sends a body so much longer (or shorter, when negative) than `Content-Range` says, with the `Content-Length` of
    /// what is really sent. For a 200 the body is longer or shorter than the media is.
    case bodyLonger(by: Int64)
    /// Sends at most so many bytes of the range asked, and says so: a legal, shorter 206.
    case rangeLimit(Int64)
    /// Responds 416 with the media's length, whatever is asked.
    case rangeNotSatisfiable
    /// Responds 416 to every range, with this `Content-Range` or none, and 200 where no range is asked.
    case refusesRanges(contentRange: String? = nil)

    // MARK: Length and framing

    /// Sends a body without a `Content-Length`.
    case noLength(Framing)
    /// Says this `Content-Length`, whatever is really sent; the connection is closed after the body.
    case contentLength(Int64)

    // MARK: Validators and content

    /// Says this `ETag`, or none.
    case etag(String?)
    /// Says neither `ETag` nor `Last-Modified`.
    case noValidators
    /// Serves other bytes under another `ETag`: the media has changed at the origin.
    case version(OriginContent, etag: String?)
    /// Compresses, whatever `Accept-Encoding` says: the body, the length and the ranges are those of a gzip file.
    case gzip
    /// Says this field, or leaves it out when nil is given.
    case field(String, String?)

    // MARK: Refusals

    /// Responds with this status, these fields and a short text; `.status(503, ["Retry-After": "2"])`.
    case status(Int, [String: String] = [:])
    /// Responds with the status (401, 403 …) unless the request's field has exactly this value.
    case requiresField(String, String, else: Int)
    /// Responds with the status (403, 410 …) unless the request's query is exactly this.
    case requiresQuery(String, else: Int)
    /// Redirects to an absolute or relative URL. A chain is several resources, a loop one that names itself.
    case redirect(String, status: Int = 302)

    // MARK: The way it ends

    /// Closes the connection after so many body bytes; nil: before the head.
    case cut(after: Int64?)
    /// Resets the connection after so many body bytes; nil: before the head. What the kernel had not yet passed on when
    /// the reset goes out is lost, as in life.
    case reset(after: Int64?)
    /// Falls silent after so many body bytes (nil: before the head) until `OriginServer/release(_:)` or until the client
    /// closes.
    case stall(after: Int64?)
    /// Sends so many bytes at once, then waits on the server's clock.
    case drip(Int, every: Duration)
    /// Closes the connection after a complete response, and says so.
    case closes
    /// Sends these bytes in place of a response, head and all, and then closes the connection, or keeps it open and
    /// silent. Only an `OriginServer` can; in memory there is no wire.
    case raw(String, closes: Bool = true)

    /// How the end of a body without length is marked.
    #if hasAttribute(nonexhaustive)
    @nonexhaustive
    #endif
    public enum Framing: Sendable {
        /// `Transfer-Encoding: chunked`.
        case chunked
        /// HTTP/1.0: the connection closes.
        case close
    }

    /// Sends about so many bytes a second, in twenty pieces.
    public static func rate(_ bytesPerSecond: Int) -> OriginBehaviour {
        .drip(max(1, bytesPerSecond / 20), every: .milliseconds(50))
    }
}

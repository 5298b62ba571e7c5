public import HTTPTypes

/// One request that an origin heard, and what became of its response.
public struct OriginExchange: Sendable {
    /// How the response stands.
    #if hasAttribute(nonexhaustive)
    @nonexhaustive
    #endif
    public enum Ending: Sendable, Equatable {
        /// Bytes are still to come.
        case running
        /// Everything was sent that was meant to be.
        case finished
        /// The origin broke off, as it was told to.
        case interrupted
        /// The client closed the connection first, or the server was stopped.
        case abandoned
    }

    /// Its place among all requests to this server, from 0.
    public var number: Int
    /// Its place among the requests to the same path, from 0.
    public var index: Int
    /// The connection that it came over, from 0: two requests with one number shared a connection.
    package var connection: Int
    /// `GET`, `HEAD` …
    public var method: String
    /// The path, without the query.
    public var path: String
    /// The query, without `?`; empty for none.
    public var query: String
    /// The request's fields.
    public var headerFields: HTTPFields
    /// The request's body.
    package var requestBody: [UInt8] = []
    /// The status of the response; nil while there is none.
    public var status: Int?
    /// The bytes of the media (half-open) that the response is to carry, told by what is sent and not by what is said.
    public var body: Range<Int64> = 0..<0
    /// How many body bytes the socket has accepted.
    public var bytesSent: Int64 = 0
    /// Whether the response waits for ``OriginServer/release(_:)``. What was sent before may still be on its way, so
    /// ``bytesSent`` may come later.
    package var isStalled = false
    /// How the response stands.
    public var ending = Ending.running

    /// A request as it was heard; the log gives it its numbers.
    package init(connection: Int, method: String, path: String, query: String, headerFields: HTTPFields) {
        (number, index) = (0, 0)
        self.connection = connection
        self.method = method
        self.path = path
        self.query = query
        self.headerFields = headerFields
    }

    /// The text of the `Range` field.
    public var rangeAsked: String? { headerFields[.range] }
    /// The bytes of the media (half-open) that the socket has accepted.
    package var rangeSent: Range<Int64> { body.lowerBound..<body.lowerBound + bytesSent }
    /// Whether nothing more will come.
    public var isOver: Bool { ending != .running }
}

package import HTTPTypes

/// The parts of a request that an origin's response depends on.
package struct OriginRequest: Sendable {
    /// `GET`, `HEAD` …
    package var method: String
    /// The query, without `?`; empty for none.
    package var query: String
    /// The request's fields.
    package var headerFields: HTTPFields
    /// Whether the client wants to use the connection again.
    package var keepsAlive: Bool
    /// How many requests to the same URL came before.
    package var index: Int

    package init(method: String, query: String, headerFields: HTTPFields, keepsAlive: Bool, index: Int) {
        self.method = method
        self.query = query
        self.headerFields = headerFields
        self.keepsAlive = keepsAlive
        self.index = index
    }
}

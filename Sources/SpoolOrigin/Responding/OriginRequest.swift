package import HTTPTypes

/// The parts of a request that an origin's response depends on.
package struct OriginRequest: Sendable {
    /// `GET`, `HEAD` …
    package var method: String
    /// The query, without `?`; empty for none.
    package var query: String
    /// The request's fields.
    package var fields: HTTPFields
    /// Whether the client wants to use the connection again.
    package var keepsAlive: Bool
    /// How many requests to the same URL came before.
    package var index: Int

    package init(method: String, query: String, fields: HTTPFields, keepsAlive: Bool, index: Int) {
        self.method = method
        self.query = query
        self.fields = fields
        self.keepsAlive = keepsAlive
        self.index = index
    }
}

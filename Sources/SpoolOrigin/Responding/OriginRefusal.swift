/// The response of an origin in place of a resource's bytes: a status, its fields, and the status's phrase as a short text.
package struct OriginRefusal: Sendable {
    /// The status: 302, 404, 503 …
    package var status: Int
    /// Fields that go with it, such as `Location`.
    package var fields: [String: String]

    package init(_ status: Int, _ fields: [String: String] = [:]) {
        self.status = status
        self.fields = fields
    }
}

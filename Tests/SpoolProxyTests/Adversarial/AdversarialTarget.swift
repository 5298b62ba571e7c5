/// The server that receives the random requests.
struct AdversarialTarget: Sendable {
    var port: Int
    var originPort: Int
    var token: String?
    /// Whether the server is a reverse proxy of the origin.
    var isReverse = false
}

/// The server that requests are drawn for.
struct HostileTarget: Sendable {
    var port: Int
    var originPort: Int
    var token: String?
    /// Whether the server stands for the origin.
    var isReverse = false
}

#if Proxy
/// How the sending of a response ended.
enum SendOutcome: Sendable, Hashable {
    /// All of it has gone out.
    case complete
    /// The body ended early, or the client left: the connection is of no more use.
    case cut(String)
}
#endif

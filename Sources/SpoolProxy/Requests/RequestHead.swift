#if Proxy
/// The head of one request (RFC 9112 §3), as the parser has found it right.
struct RequestHead: Sendable, Hashable {
    /// What is to be done (RFC 9110 §9).
    enum Method: Sendable, Hashable {
        case get
        case head
        case options
        /// Any other, as it was sent.
        case other(String)

        /// The method as it stands in a request line.
        var name: String {
            switch self {
            case .get: "GET"
            case .head: "HEAD"
            case .options: "OPTIONS"
            case .other(let name): name
            }
        }

        /// Whether it changes nothing at the origin (RFC 9110 §9.2.1).
        var isSafe: Bool {
            switch self {
            case .get, .head, .options: true
            case .other(let name): name == "TRACE"
            }
        }
    }

    /// How the length of the request's body is told (RFC 9112 §6.3).
    enum Body: Sendable, Hashable {
        case none
        case length(Int64)
        case chunked
    }

    var method: Method
    /// Path and query, from their first `/`; `*` for the server as a whole.
    var target: String
    /// The second digit of the version; the first one is 1.
    var minorVersion: Int
    var fields: RequestFields
    var body: Body
    /// Whether the client will send another request over the connection (RFC 9112 §9.3).
    var keepsAlive: Bool
    /// The host that the client means, with the port if it names one: of an absolute target, else of `Host`; nil for a
    /// client of HTTP/1.0 that names none.
    var host: String?
}
#endif

#if Proxy
import HTTPTypes
import NIOCore

extension Response {
    /// How a client learns where the body ends (RFC 9112 §6).
    enum Framing: Sendable, Hashable {
        /// There is no body.
        case none
        /// After as many bytes.
        case length(Int64)
        /// After the last chunk.
        case chunked
        /// With the connection: to a client that knows no chunks.
        case close
    }

    /// The head as it is to be sent, and the framing of what follows it.
    ///
    /// - Parameters:
    ///   - request: What it responds to.
    ///   - keepsAlive: Whether the server would go on with the connection.
    ///   - date: Now, as `Date` has it.
    func framed(for request: RequestHead, keepsAlive: Bool, date: String) -> (head: ResponseHead, Framing, keeps: Bool)
    {
        var head = head
        var framing: Framing
        let hasNoBody = head.status == 204 || head.status == 304 || (100..<200).contains(head.status)
        if hasNoBody {
            framing = .none
        } else if let count = body.count {
            framing = .length(count)
        } else {
            framing = request.minorVersion >= 1 ? .chunked : .close
        }
        if request.method == .head {
            // What a GET would be told, where it is known.
            if case .length(let count) = framing, head.fields[.contentLength] == nil, !(isBodiless && count == 0) {
                head.fields[.contentLength] = String(count)
            }
            framing = .none
            // RFC 9110 §8.6.
            if head.status == 204 { head.fields[.contentLength] = nil }
        } else {
            head.fields[.contentLength] = nil
            switch framing {
            case .length(let count): head.fields[.contentLength] = String(count)
            case .chunked: head.fields[.transferEncoding] = "chunked"
            case .none, .close: break
            }
        }
        if head.fields[.date] == nil { head.fields[.date] = date }
        let keeps = keepsAlive && request.keepsAlive && !closes && framing != .close
        if !keeps {
            head.fields[.connection] = "close"
        } else if request.minorVersion == 0 {
            head.fields[.connection] = "keep-alive"
        }
        return (head, framing, keeps)
    }

    private var isBodiless: Bool { if case .none = body { true } else { false } }
}
#endif

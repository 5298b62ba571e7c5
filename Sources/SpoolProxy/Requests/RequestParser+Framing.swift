#if Proxy
import ByteRanges

extension RequestParser {
    private static func host(
        _ fields: RequestFields, _ absolute: String?, _ minor: Int
    ) throws(RequestFailure) -> String? {
        let hosts = fields.values("host")
        guard hosts.count <= 1 else { throw malformed("it has \(hosts.count) Host fields") }
        guard !hosts.isEmpty || minor == 0 else { throw malformed("it has no Host field") }
        // A target that names a host goes before the field (RFC 9112 §3.2.2).
        return absolute ?? hosts.first
    }

    /// RFC 9112 §6.3, refusing what §6.1 lets be guessed.
    private static func body(_ fields: RequestFields, _ minor: Int) throws(RequestFailure) -> RequestHead.Body {
        let codings = fields.values("transfer-encoding")
        let lengths = fields.values("content-length")
        if !codings.isEmpty {
            guard lengths.isEmpty else { throw malformed("it has both Content-Length and Transfer-Encoding") }
            guard minor >= 1 else { throw malformed("HTTP/1.0 has no Transfer-Encoding") }
            guard codings.count == 1, codings[0].lowercased() == "chunked" else {
                throw RequestFailure(501, "a body with a Transfer-Encoding other than chunked is not taken")
            }
            return .chunked
        }
        guard let text = lengths.first else { return .none }
        guard lengths.count == 1, !text.isEmpty, text.utf8.count <= 18,
            text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }),
            let length = Int64(text)
        else { throw malformed("its Content-Length is not one number") }
        guard length <= NumberLimits.byteOffset else {
            throw RequestFailure(413, "a body of more than \(NumberLimits.byteOffset) bytes is not accepted")
        }
        return length == 0 ? .none : .length(length)
    }

    /// RFC 9112 §9.3.
    private static func keepsAlive(_ fields: RequestFields, _ minor: Int) -> Bool {
        var keepsAlive = minor >= 1
        for value in fields.values("connection") {
            for option in value.lowercased().split(separator: ",") {
                switch option.drop(while: { $0 == " " || $0 == "\t" }).prefix(while: { $0 != " " && $0 != "\t" }) {
                case "close": return false
                case "keep-alive": keepsAlive = true
                default: break
                }
            }
        }
        return keepsAlive
    }

    static func assemble(_ line: RequestLine, _ fields: RequestFields) throws(RequestFailure) -> RequestHead {
        RequestHead(
            method: line.method, target: line.target, minorVersion: min(line.minorVersion, 1), fields: fields,
            body: try body(fields, line.minorVersion), keepsAlive: keepsAlive(fields, line.minorVersion),
            host: try host(fields, line.host, line.minorVersion))
    }
}
#endif

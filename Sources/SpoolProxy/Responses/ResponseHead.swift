#if Proxy
import HTTPTypes
import NIOCore

/// The head of one response, before it is known how the connection goes on.
struct ResponseHead: Sendable, Hashable {
    var status: Int
    var fields: HTTPFields

    init(_ status: Int, _ fields: HTTPFields = [:]) {
        self.status = status
        self.fields = fields
    }

    /// Writes the head as it goes over the wire, with the empty line.
    ///
    /// Values have neither CR, LF nor NUL: `HTTPField` keeps none.
    func encode(into buffer: inout ByteBuffer) {
        buffer.writeStaticString("HTTP/1.1 ")
        buffer.writeString(String(status))
        buffer.writeStaticString(" ")
        buffer.writeString(StatusText.of(status))
        buffer.writeStaticString("\r\n")
        Self.encode(fields, into: &buffer)
        buffer.writeStaticString("\r\n")
    }

    /// Writes fields, a line each.
    static func encode(_ fields: HTTPFields, into buffer: inout ByteBuffer) {
        for field in fields {
            buffer.writeString(field.name.rawName)
            buffer.writeStaticString(": ")
            field.withUnsafeBytesOfValue { _ = buffer.writeBytes($0) }
            buffer.writeStaticString("\r\n")
        }
    }
}
#endif

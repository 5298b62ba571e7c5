#if Proxy
import NIOCore
import SpoolHTTP

/// The header with which a load balancer starts a connection in version 1 or 2 of HAProxy's PROXY protocol.
///
/// Parsing does not perform I/O. The server's address, the ports and additional values are ignored.
struct ProxyProtocolHeader: Sendable, Hashable {
    /// The address of the client. It is `nil` for a connection from the load balancer itself, such as a health check,
    /// and for a client without an IP address.
    var client: IPAddress?

    /// An error that states why bytes are not a valid header.
    struct Malformed: Error, Hashable, CustomStringConvertible {
        let description: String
    }

    /// Removes and returns the header at the start of a connection's bytes. The result is `nil` until the header is
    /// complete.
    ///
    /// Bytes after the header stay in the buffer.
    ///
    /// - Throws: ``Malformed`` as soon as the bytes can't be the start of a header.
    static func next(in buffer: inout ByteBuffer) throws(Malformed) -> ProxyProtocolHeader? {
        let bytes = buffer.readableBytesView
        guard let first = bytes.first else { return nil }
        let isText = first == signature1[0]
        let signature = isText ? signature1 : signature2
        guard bytes.starts(with: signature.prefix(bytes.count)) else {
            throw Malformed(description: "the connection does not start with one")
        }
        guard bytes.count >= signature.count else { return nil }
        guard let (header, count) = try isText ? text(bytes) : binary(bytes) else { return nil }
        buffer.moveReaderIndex(forwardBy: count)
        return header
    }

    // MARK: - Version 1

    private static let signature1 = Array("PROXY ".utf8)
    /// The maximum length in bytes of a version 1 header, including CR LF.
    private static let textLimit = 107

    /// Parses a line such as `PROXY TCP4 192.0.2.1 198.51.100.1 56324 443`. The protocol may also be `TCP6`, or
    /// `UNKNOWN` followed by any text.
    private static func text(_ bytes: ByteBufferView) throws(Malformed) -> (ProxyProtocolHeader, count: Int)? {
        guard let end = bytes.prefix(textLimit).firstIndex(of: 0x0A) else {
            if bytes.count >= textLimit { throw Malformed(description: "its line has no end within 107 bytes") }
            return nil
        }
        let line = bytes[bytes.startIndex..<end]
        guard line.last == 0x0D else { throw Malformed(description: "its line does not end with CR LF") }
        let parts = String(decoding: line.dropFirst(signature1.count).dropLast(), as: UTF8.self)
            .split(separator: " ", omittingEmptySubsequences: false)
        let count = line.count + 1
        if parts[0] == "UNKNOWN" { return (ProxyProtocolHeader(), count) }
        guard parts.count == 5, parts[0] == "TCP4" || parts[0] == "TCP6" else {
            throw Malformed(description: "its line has an unknown protocol or a wrong number of parts")
        }
        for text in parts[1...2] where text.contains(":") != (parts[0] == "TCP6") {
            throw Malformed(description: "the family of an address differs from the protocol")
        }
        guard let client = IPAddress(parts[1]), IPAddress(parts[2]) != nil else {
            throw Malformed(description: "an address is invalid")
        }
        guard parts[3...4].allSatisfy({ $0.utf8.allSatisfy { $0 >= 0x30 && $0 <= 0x39 } && UInt16($0) != nil }) else {
            throw Malformed(description: "a port is invalid")
        }
        return (ProxyProtocolHeader(client: client), count)
    }

    // MARK: - Version 2

    private static let signature2: [UInt8] = [
        0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A,
    ]

    /// Parses the command, the family, the length, the addresses, and additional values up to the length.
    private static func binary(_ bytes: ByteBufferView) throws(Malformed) -> (ProxyProtocolHeader, count: Int)? {
        let rest = Array(bytes.dropFirst(signature2.count).prefix(4))
        var isLocal = false
        if let command = rest.first {
            guard command == 0x20 || command == 0x21 else { throw Malformed(description: "its command is unknown") }
            isLocal = command == 0x20
        }
        // The number of bytes of one address, and of all addresses and ports.
        var (size, needed) = (0, 0)
        if rest.count > 1, !isLocal {
            switch rest[1] {
            case 0x00: break
            case 0x11: (size, needed) = (4, 12)
            case 0x21: (size, needed) = (16, 36)
            case 0x31: needed = 216
            default: throw Malformed(description: "its address family is unknown")
            }
        }
        guard rest.count == 4 else { return nil }
        let length = Int(rest[2]) << 8 | Int(rest[3])
        guard length >= needed else { throw Malformed(description: "its length is too small for its addresses") }
        let start = signature2.count + rest.count
        guard bytes.count >= start + length else { return nil }
        let client = size > 0 ? IPAddress(bytes: Array(bytes.dropFirst(start).prefix(size))) : nil
        return (ProxyProtocolHeader(client: client), start + length)
    }
}
#endif

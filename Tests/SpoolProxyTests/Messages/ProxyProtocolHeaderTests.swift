import NIOCore
import SpoolHTTP
import SpoolTesting
import Testing

@testable import SpoolProxy

/// PROXY protocol headers, as specified by HAProxy.
@Suite struct ProxyProtocolHeaderTests {
    private static let signature: [UInt8] = [
        0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A,
    ]

    private static func binary(_ command: UInt8, _ family: UInt8, _ content: [UInt8]) -> [UInt8] {
        signature + [command, family, UInt8(content.count >> 8), UInt8(content.count & 0xFF)] + content
    }

    private static let addresses4: [UInt8] = [192, 0, 2, 1, 198, 51, 100, 1, 0xDC, 0x04, 0x01, 0xBB]
    private static let addresses6: [UInt8] =
        [0x20, 0x01, 0x0D, 0xB8] + Array(repeating: 0, count: 11) + [1]
        + [0x20, 0x01, 0x0D, 0xB8] + Array(repeating: 0, count: 11) + [2] + [0, 80, 1, 0xBB]
    private static let longest = "PROXY UNKNOWN " + String(repeating: "f", count: 91) + "\r\n"

    static let valid: [(bytes: [UInt8], client: String?)] = [
        (Array("PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n".utf8), "192.0.2.1"),
        (Array("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n".utf8), "255.255.255.255"),
        (Array("PROXY TCP6 2001:db8::1 2001:db8::2 0 65535\r\n".utf8), "2001:db8::1"),
        (Array("PROXY TCP6 ::ffff:192.0.2.1 ::1 1 2\r\n".utf8), "192.0.2.1"),
        (Array("PROXY UNKNOWN\r\n".utf8), nil),
        (Array(longest.utf8), nil),
        (binary(0x21, 0x11, addresses4), "192.0.2.1"),
        (binary(0x21, 0x11, addresses4 + [0x04, 0x00, 0x01, 0x00]), "192.0.2.1"),
        (binary(0x21, 0x21, addresses6), "2001:db8::1"),
        (binary(0x21, 0x21, addresses6 + Array(repeating: 7, count: 300)), "2001:db8::1"),
        (binary(0x21, 0x31, Array(repeating: 0x61, count: 216)), nil),
        (binary(0x21, 0x00, []), nil), (binary(0x21, 0x00, [1, 2, 3]), nil),
        (binary(0x20, 0x00, []), nil), (binary(0x20, 0x11, addresses4), nil), (binary(0x20, 0xFF, [1]), nil),
    ]

    /// The result of parsing bytes that are received in one piece; `nil` if more bytes are needed.
    private enum Outcome: Equatable {
        case header(ProxyProtocolHeader, count: Int)
        case malformed
    }

    private static func parse(_ bytes: some Sequence<UInt8>) -> Outcome? {
        var buffer = ByteBuffer(bytes: bytes)
        let count = buffer.readableBytes
        do {
            guard let header = try ProxyProtocolHeader.next(in: &buffer) else {
                #expect(buffer.readableBytes == count)
                return nil
            }
            return .header(header, count: count - buffer.readableBytes)
        } catch {
            #expect(buffer.readableBytes == count)
            return .malformed
        }
    }

    @Test(
        "E207: a PROXY protocol header is recognized once its last byte is received, and later bytes are not consumed",
        arguments: valid.indices)
    func pieces(index: Int) throws {
        let (bytes, client) = Self.valid[index]
        let header = ProxyProtocolHeader(client: try client.map { try #require(IPAddress($0[...])) })
        for count in bytes.indices { #expect(Self.parse(bytes.prefix(count)) == nil, "\(count)") }
        for rest in ["", "GET / HTTP/1.1\r\n\r\n", "\r\n\0PROXY \n"] {
            #expect(Self.parse(bytes + Array(rest.utf8)) == .header(header, count: bytes.count))
        }
        // The reader index must not affect the result.
        var buffer = ByteBuffer(bytes: [1, 2, 3] + bytes + [4])
        buffer.moveReaderIndex(forwardBy: 3)
        #expect(try ProxyProtocolHeader.next(in: &buffer) == header)
        #expect(Array(buffer.readableBytesView) == [4])
    }

    @Test(
        "E207: malformed PROXY protocol headers in text form are rejected",
        arguments: [
            "GET / HTTP/1.1\r\n", "proxy TCP4 ", "PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\n", "PROXY \r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 56324\r\n", "PROXY TCP4 192.0.2.1 198.51.100.1 56324 443 1\r\n",
            "PROXY TCP4  192.0.2.1 198.51.100.1 56324 443\r\n", "PROXY TCP4 192.0.2.1 198.51.100.1 65536 443\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 +1 443\r\n", "PROXY TCP4 192.0.2.1 198.51.100.1 1 \r\n",
            "PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n", "PROXY TCP6 192.0.2.1 198.51.100.1 1 2\r\n",
            "PROXY TCP4 192.0.2.256 198.51.100.1 1 2\r\n", "PROXY TCP4 192.0.2.1 x 1 2\r\n",
            "PROXY TCP4 localhost 198.51.100.1 1 2\r\n", "PROXY UDP4 192.0.2.1 198.51.100.1 1 2\r\n",
            "PROXY UNKNOWN " + String(repeating: "f", count: 92) + "\r\n", "\r\n\r\nGET / HTTP/1.1",
            "\r\n\r\n\0\r\nQUIT\r",
        ])
    func malformed(text: String) { #expect(Self.parse(text.utf8) == .malformed) }

    @Test("E207: binary PROXY protocol headers with an unknown command or family, or with a wrong length, are rejected")
    func malformedBinary() {
        for command in UInt8.min ... .max where command != 0x20 && command != 0x21 {
            #expect(Self.parse(Self.signature + [command]) == .malformed)
        }
        for family in UInt8.min ... .max where ![0x00, 0x11, 0x21, 0x31].contains(family) {
            #expect(Self.parse(Self.signature + [0x21, family]) == .malformed)
        }
        for (family, count) in [(UInt8(0x11), 11), (0x21, 35), (0x31, 215)] {
            #expect(Self.parse(Self.signature + [0x21, family, 0, UInt8(count)]) == .malformed)
        }
        #expect(Self.parse(Self.signature + [0x21, 0x11, 0xFF, 0xFF] + Self.addresses4) == nil)
    }

    @Test(
        "E207: a mutated header is parsed identically in pieces and at once, and yields only addresses from its bytes")
    func changed() {
        var random = SplitMix(7)
        for _ in 0..<3000 {
            var bytes = Self.valid[random.below(Self.valid.count)].bytes
            for _ in 0...random.below(3) {
                let place = random.below(bytes.count)
                switch random.below(4) {
                case 0: bytes[place] = UInt8(random.below(256))
                case 1: bytes[place] ^= 1 << UInt8(random.below(8))
                case 2: bytes.insert(bytes[random.below(bytes.count)], at: place)
                default: if bytes.count > 1 { bytes.remove(at: place) }
                }
            }
            let whole = Self.parse(bytes)
            // The shortest prefix that yields a result determines the result.
            let first = (0...bytes.count).lazy.compactMap { Self.parse(bytes.prefix($0)) }.first
            #expect(first == whole, "\(bytes)")
            guard case .header(let header, let count) = whole else { continue }
            #expect(count <= bytes.count)
            guard let client = header.client else { continue }
            let text = String(decoding: bytes.prefix(count), as: UTF8.self).split(separator: " ")
            let named = text.first == "PROXY" ? IPAddress(text[2]) : nil
            let packed = IPAddress(bytes: Array(bytes.dropFirst(16).prefix(client.bytes.count)))
            let packed6 = IPAddress(bytes: Array(bytes.dropFirst(16).prefix(16)))
            #expect(client == named || client == packed || client == packed6, "\(bytes)")
        }
    }
}

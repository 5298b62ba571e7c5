import Foundation
import NIOCore
import NIOPosix
import SpoolTesting

/// A plain HTTP/1.1 client, which accepts the same faults as curl and players.
///
/// It follows redirects, and sends cookies to the host that set them. It does not have a cache.
struct PlainClient {
    /// The header fields that are added to each request.
    var fields: [String: String] = [:]

    /// Requests a URL over new connections.
    ///
    /// - Parameters:
    ///   - range: The value of the `Range` field.
    ///   - limit: The number of body bytes after which the client disconnects.
    /// - Throws: ``Tool/Failed`` if there are too many redirects or there is no response, or the error of the
    ///   connection.
    func get(
        _ url: URL, range: String? = nil, method: String = "GET", limit: Int = .max
    ) async throws -> PlainResponse {
        var (url, cookies) = (url, [String: [String: String]]())
        for _ in 0...30 {
            let host = url.host() ?? ""
            var lines = fields.map { "\($0): \($1)\r\n" }.joined()
            if let range { lines += "Range: \(range)\r\n" }
            if let jar = cookies[host] { lines += "Cookie: \(jar.values.sorted().joined(separator: "; "))\r\n" }
            let target = url.path(percentEncoded: true) + (url.query(percentEncoded: true).map { "?" + $0 } ?? "")
            let text = "\(method) \(target) HTTP/1.1\r\nHost: \(host):\(url.port ?? 80)\r\nConnection: close\r\n"
            let received = try await exchange(text + lines + "\r\n", host, url.port ?? 80, limit)
            guard let response = PlainResponse(received, hasBody: method != "HEAD") else {
                throw Tool.Failed(description: "no response from \(url), but \(received.count) bytes")
            }
            for cookie in response.values("set-cookie") {
                let pair = cookie.prefix { $0 != ";" }
                cookies[host, default: [:]][String(pair.prefix { $0 != "=" })] = String(pair)
            }
            guard [301, 302, 303, 307, 308].contains(response.status), let location = response.field("location"),
                !location.isEmpty,
                let next = URL(string: location, relativeTo: url)
            else { return response }
            url = next.absoluteURL
        }
        throw Tool.Failed(description: "too many redirects")
    }

    private func exchange(_ text: String, _ host: String, _ port: Int, _ limit: Int) async throws -> [UInt8] {
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: host, port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        return try await channel.executeThenClose { inbound, outbound in
            try await outbound.write(ByteBuffer(string: text))
            var received: [UInt8] = []
            do {
                for try await buffer in inbound {
                    received += buffer.readableBytesView
                    if received.count >= limit.addingReportingOverflow(8192).partialValue, limit < .max { break }
                }
            } catch {
                // A reset after the last byte does not matter, and a body that is too short is reported as incomplete.
                if received.isEmpty { throw error }
            }
            return received
        }
    }
}

/// A response, as received by a ``PlainClient``.
struct PlainResponse {
    var status: Int
    var fields: [(name: String, value: String)] = []
    var body: [UInt8] = []
    /// Whether the body has its stated length.
    var isComplete = true

    func field(_ name: String) -> String? { values(name).first }
    func values(_ name: String) -> [String] { fields.filter { $0.name.lowercased() == name }.map(\.value) }
    var text: String { String(decoding: body, as: UTF8.self) }

    /// Returns the bytes of the media that follow an offset; `nil` if the response does not contain them.
    func media(from offset: Int) -> [UInt8]? {
        switch status {
        case 206: body
        case 200: Array(body.dropFirst(offset))
        default: nil
        }
    }

    /// Parses the bytes received over a connection. The result is `nil` if the head is incomplete.
    init?(_ received: [UInt8], hasBody: Bool) {
        var rest = received[...]
        status = 0
        repeat {
            fields = []
            guard var line = Self.line(&rest) else { return nil }
            while line.isEmpty {
                guard let next = Self.line(&rest) else { return nil }
                line = next
            }
            status = Int(line.split(separator: " ").dropFirst().first ?? "") ?? 0
            while true {
                guard let line = Self.line(&rest) else { return nil }
                if line.isEmpty { break }
                if line.first == " " || line.first == "\t", let last = fields.indices.last {
                    fields[last].value += " " + line.trimmingCharacters(in: .whitespaces)
                } else if let colon = line.firstIndex(of: ":") {
                    let name = line[..<colon].trimmingCharacters(in: .whitespaces)
                    fields.append((name, line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)))
                }
            }
        } while (100..<200).contains(status)
        guard hasBody, status != 204, status != 304 else { return }
        if values("transfer-encoding").contains(where: { $0.lowercased().contains("chunked") }) {
            readChunks(&rest)
        } else if let length = field("content-length").flatMap({ Int($0.prefix { $0 != "," }) }) {
            body = Array(rest.prefix(length))
            isComplete = rest.count >= length
        } else {
            body = Array(rest)
        }
    }

    private mutating func readChunks(_ rest: inout ArraySlice<UInt8>) {
        isComplete = false
        while let line = Self.line(&rest), let size = Int(line.prefix { $0.isHexDigit }, radix: 16) {
            if size == 0 {
                isComplete = true
                return
            }
            body += rest.prefix(size)
            guard rest.count >= size else { return }
            rest = rest.dropFirst(size)
            _ = Self.line(&rest)
        }
    }

    private static func line(_ rest: inout ArraySlice<UInt8>) -> String? {
        guard let end = rest.firstIndex(of: 0x0A) else { return nil }
        var line = rest[..<end]
        if line.last == 0x0D { line = line.dropLast() }
        rest = rest[(end + 1)...]
        return String(decoding: line, as: UTF8.self)
    }
}

import Foundation
import Synchronization

/// The origin's responses. The first part of a path selects the behavior, and the last part the file:
///
/// - `/media`: ranges and a length
/// - `/endless`: bytes until the connection closes, without a length or ranges
/// - `/held`: the first half, and the second half once it is released
/// - `/moved`: a redirect to `/media`
/// - `/cookie`: 403 without a cookie
/// - `/missing`: 404
extension ReportOrigin {
    /// Serves the next request of a connection. Returns `false` if the connection ends.
    func serve(_ connection: ReportConnection, isIPv6: Bool) -> Bool {
        guard let header = connection.readHeader() else { return false }
        let lines = header.components(separatedBy: "\r\n")
        let words = lines[0].components(separatedBy: " ")
        guard words.count == 3, ["GET", "HEAD"].contains(words[0]) else { return false }
        func field(_ name: String) -> String? {
            lines.dropFirst().first { $0.lowercased().hasPrefix(name + ":") }
                .map { $0.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces) }
        }
        let path = words[1]
        let range = field("range")
        state.withLock {
            $0.received.append(
                Received(
                    path: path, range: range, userAgent: field("user-agent"), cookie: field("cookie"), isIPv6: isIPv6))
        }
        let parts = path.split(separator: "/").map(String.init)
        guard parts.count == 2, let file = files[parts[1]] else { return respond(404, to: connection) }
        let isHead = words[0] == "HEAD"
        switch parts[0] {
        case "media": return send(file, range, isHead: isHead, to: connection)
        case "held": return send(file, range, isHead: isHead, isHeld: true, to: connection)
        case "cookie" where field("cookie") != nil: return send(file, range, isHead: isHead, to: connection)
        case "cookie": return respond(403, to: connection)
        case "moved": return respond(302, fields: ["Location: /media/\(parts[1])"], to: connection)
        case "endless":
            let fields = "HTTP/1.1 200 OK\r\nContent-Type: \(file.contentType)\r\nConnection: close\r\n\r\n"
            if connection.write(Data(fields.utf8)), !isHead { _ = connection.write(file.bytes) }
            return false
        default: return respond(404, to: connection)
        }
    }

    private func respond(_ status: Int, fields: [String] = [], to connection: ReportConnection) -> Bool {
        let fields = ["HTTP/1.1 \(status) Status", "Content-Length: 0"] + fields
        return connection.write(Data((fields.joined(separator: "\r\n") + "\r\n\r\n").utf8))
    }

    private func send(
        _ file: Fixtures.File, _ field: String?, isHead: Bool, isHeld: Bool = false, to connection: ReportConnection
    ) -> Bool {
        let length = file.bytes.count
        let range = Self.range(field, length: length)
        var fields = [
            range == nil ? "HTTP/1.1 200 OK" : "HTTP/1.1 206 Partial Content", "Content-Type: \(file.contentType)",
            "Accept-Ranges: bytes", "ETag: \"report\"", "Content-Length: \(range?.count ?? length)",
        ]
        if let range { fields.append("Content-Range: bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length)") }
        guard connection.write(Data((fields.joined(separator: "\r\n") + "\r\n\r\n").utf8)) else { return false }
        if isHead { return true }
        let body = file.bytes[range ?? 0..<length]
        let first = isHeld ? max(body.startIndex, min(body.endIndex, length / 2)) : body.endIndex
        guard connection.write(body[..<first]) else { return false }
        if first < body.endIndex { held.wait() }
        return connection.write(body[first...])
    }

    private static func range(_ field: String?, length: Int) -> Range<Int>? {
        guard let field, field.hasPrefix("bytes=") else { return nil }
        let ends = field.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Int(ends[0]), first < length else { return nil }
        return first..<min(length, (Int(ends[1]) ?? length - 1) + 1)
    }
}

import Foundation

/// The header sections from which mutation starts. Each file contains a status line and fields, as servers send them.
///
/// `{first}`, `{last}`, `{count}` and `{length}` are replaced by the requested range, and `{port}` by the server's
/// port.
struct Corpus {
    let heads: [[String]]
    let tokens: [[UInt8]]

    init(_ folder: URL) throws {
        let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        heads = try files.sorted { $0.path < $1.path }.map { file in
            try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map { String($0) }
        }
        guard !heads.isEmpty else { throw CocoaError(.fileNoSuchFile) }
        tokens = Self.oddities.map { Array($0.utf8) } + [[0], [0xFF], [0x0D], [0x0A], [0x7F], [0x80, 0x80]]
    }

    /// Tokens that parsers often handle incorrectly.
    private static let oddities = [
        "-1", "0", "00", "65536", "4294967296", "9223372036854775807", "9223372036854775808", "18446744073709551616",
        "1e9", "0x10", "+5", "*", "*/*", "bytes", ",", ";", "=", "\"", "\\", "W/", "%00", "://", "[::1]", "@", "#",
        "\t",
        " ", "\r\n", "\n\n", "\r\n\r\n", "\r\n ", ": ", "chunked", "gzip, chunked", "identity", "close", "keep-alive",
        "upgrade", "no-store", "must-revalidate", "max-age=0", "text/html", "multipart/byteranges; boundary=a",
        "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", "HTTP/1.1 099 \r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n",
        "Location: /\r\n", "Location: http://127.0.0.1:99999/\r\n", "Content-Range: bytes 0-0/1\r\n",
    ]
}

import Foundation
import HTTPTypes
import Spool
import SpoolHTTP

/// An nginx of our own: serves files of a temporary folder on loopback while this lives.
///
/// `sendfile on`, `tcp_nopush off`, one process. With `tcp_nopush on` nginx stalls small ranges by up to 40 ms, so
/// figures taken with that setting are other figures.
final class LocalOrigin: Sendable {
    /// Where nginx's files are.
    let folder: TemporaryFolder
    private let port: Int
    private let process: Process

    /// Starts nginx and waits until it responds.
    ///
    /// - Throws: ``BenchmarkError`` if there is no nginx on the machine, or it does not respond.
    init() async throws {
        folder = try TemporaryFolder("origin")
        port = Int.random(in: 20_000..<30_000)
        try Data(Self.configuration(port: port).utf8).write(to: folder.file("nginx.conf"))
        process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["nginx", "-p", folder.url.path, "-c", "nginx.conf", "-e", "error.log"]
        process.environment = ProcessInfo.processInfo.environment.merging(
            ["PATH": "/usr/sbin:/usr/local/sbin:/opt/homebrew/bin:/usr/bin:/bin"], uniquingKeysWith: { $0 + ":" + $1 })
        try process.run()
        try await waitUntilItResponds()
    }

    deinit {
        // Not SIGTERM: a process started from one of Swift's threads may inherit it blocked.
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// The address of a file.
    func url(_ name: String, query: String = "") throws -> URL {
        guard let url = URL(string: "http://127.0.0.1:\(port)/\(name)\(query.isEmpty ? "" : "?" + query)") else {
            throw BenchmarkError("“\(name)” makes no address")
        }
        return url
    }

    /// Writes `count` bytes of noise into a file that the origin serves, and returns its address.
    func makeFile(_ name: String, byteCount count: Int64) throws -> URL {
        try writeNoise(to: folder.file(name), byteCount: count)
        return try url(name)
    }

    private func waitUntilItResponds() async throws {
        let upstream = HTTPUpstream.standard()
        for _ in 0..<200 where process.isRunning {
            if (try? await upstream.open(UpstreamRequest(url: url("")))) != nil { return }
            try await Task.sleep(for: .milliseconds(20))
        }
        let log = (try? String(contentsOf: folder.file("error.log"), encoding: .utf8)) ?? ""
        throw BenchmarkError("nginx does not respond; install it (apt-get install nginx). \(log)")
    }

    private static func configuration(port: Int) -> String {
        """
        daemon off;
        master_process off;
        pid nginx.pid;
        events { worker_connections 256; }
        http {
            access_log off;
            default_type application/octet-stream;
            sendfile on;
            tcp_nopush off;
            keepalive_requests 1000000;
            client_body_temp_path temp;
            proxy_temp_path temp;
            fastcgi_temp_path temp;
            uwsgi_temp_path temp;
            scgi_temp_path temp;
            server {
                listen 127.0.0.1:\(port);
                root .;
            }
        }
        """
    }
}

/// A folder for a benchmark's files, removed with what is in it when this is released.
final class TemporaryFolder: Sendable {
    let url: URL

    init(_ name: String) throws {
        url = FileManager.default.temporaryDirectory.appending(
            path: "spool-benchmark-\(name)-\(UUID().uuidString.prefix(8))", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    /// A file or folder in it.
    func file(_ name: String) -> URL { url.appending(path: name) }
}

/// Why a benchmark can't be run here.
struct BenchmarkError: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) { self.description = description }
}

/// Writes `count` bytes that no file system can store in less room, in pieces of 1 MiB.
func writeNoise(to file: URL, byteCount count: Int64) throws {
    var random = SeededGenerator(seed: 7)
    let piece = Data((0..<1 << 17).flatMap { _ in withUnsafeBytes(of: random.next(), Array.init) })
    try Data().write(to: file)
    let handle = try FileHandle(forWritingTo: file)
    var missing = count
    while missing > 0 {
        let part = min(missing, Int64(piece.count))
        try handle.write(contentsOf: piece.prefix(Int(part)))
        missing -= part
    }
    try handle.close()
}

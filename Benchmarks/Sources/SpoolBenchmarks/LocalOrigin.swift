import Foundation
import HTTPTypes
import Spool
import SpoolHTTP

/// An nginx process that serves the files of a temporary folder on loopback until this object is released.
///
/// It runs with `sendfile on`, `tcp_nopush off` and one process. With `tcp_nopush on`, nginx delays small ranges by up
/// to 40 ms, so results with that setting are not comparable.
final class LocalOrigin: Sendable {
    /// The folder that contains nginx's files.
    let folder: TemporaryFolder
    private let port: Int
    private let process: Process

    /// Starts nginx and waits until it responds.
    ///
    /// - Throws: ``BenchmarkError`` if nginx is not installed or does not respond.
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
        // SIGTERM may be blocked in a process that is started from one of Swift's threads.
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// Returns the URL of a file.
    func url(_ name: String, query: String = "") throws -> URL {
        guard let url = URL(string: "http://127.0.0.1:\(port)/\(name)\(query.isEmpty ? "" : "?" + query)") else {
            throw BenchmarkError("“\(name)” is not valid in a URL")
        }
        return url
    }

    /// Writes `count` random bytes to a file that the origin serves, and returns its URL.
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

/// A folder for the files of a benchmark. It is removed with its contents when this object is released.
final class TemporaryFolder: Sendable {
    let url: URL

    init(_ name: String) throws {
        url = FileManager.default.temporaryDirectory.appending(
            path: "spool-benchmark-\(name)-\(UUID().uuidString.prefix(8))", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    /// Returns the URL of a file or folder in this folder.
    func file(_ name: String) -> URL { url.appending(path: name) }
}

/// An error that explains why a benchmark can't run.
struct BenchmarkError: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) { self.description = description }
}

/// Writes `count` bytes that a file system can't compress, in pieces of 1 MiB.
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

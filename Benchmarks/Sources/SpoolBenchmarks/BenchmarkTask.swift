import Foundation
import Spool
import SpoolHTTP

/// The alternative to `spool get`: a process that saves the resource at a URL as a file, with the same HTTP client and
/// no cache.
///
/// The benchmarks start it as `SpoolBenchmarks --fetch URL FILE`.
struct BenchmarkTask {
    var url: URL
    var file: URL

    init(url: URL, file: URL) {
        self.url = url
        self.file = file
    }

    /// Parses the arguments of ``command``. The result is `nil` for other arguments.
    init?(_ arguments: [String]) {
        guard arguments.count == 3, arguments[0] == "--fetch", let url = URL(string: arguments[1]) else { return nil }
        self.init(url: url, file: URL(filePath: arguments[2]))
    }

    /// The command that runs this task in a new process.
    var command: [String] {
        [Bundle.main.executablePath ?? CommandLine.arguments[0], "--fetch", url.absoluteString, file.path]
    }

    func run() async throws {
        let upstream = HTTPUpstream.standard()
        let response = try await upstream.open(UpstreamRequest(url: url))
        try Data().write(to: file)
        let handle = try FileHandle(forWritingTo: file)
        for try await chunk in response.body {
            try chunk.withUnsafeBytes { try write($0, to: handle.fileDescriptor) }
        }
        try handle.close()
    }

    private func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) throws {
        var bytes = bytes
        while let base = bytes.baseAddress, !bytes.isEmpty {
            let count = Foundation.write(descriptor, base, bytes.count)
            guard count > 0 else { throw BenchmarkError("the file can't be written: error \(errno)") }
            bytes = UnsafeRawBufferPointer(rebasing: bytes[count...])
        }
    }
}

import Foundation
import Spool
import SpoolHTTP

/// What a benchmark has a process of its own do, so that its time and memory are that work's alone.
///
/// Started by the benchmarks themselves: `SpoolBenchmarks --errand NAME URL PATH`.
enum Errand {
    /// Lands all of `url` in the cache directory, reading it as it lands: what `spool get` does.
    case get(url: URL, cache: URL)
    /// Writes all of `url` into a file with the same HTTP client and no cache.
    case fetch(url: URL, file: URL)

    init?(_ arguments: [String]) {
        guard arguments.count == 4, arguments[0] == "--errand", let url = URL(string: arguments[2]) else { return nil }
        let path = URL(filePath: arguments[3])
        switch arguments[1] {
        case "get": self = .get(url: url, cache: path)
        case "fetch": self = .fetch(url: url, file: path)
        default: return nil
        }
    }

    /// The command that has this errand done.
    var command: [String] {
        let program = Bundle.main.executablePath ?? CommandLine.arguments[0]
        switch self {
        case .get(let url, let cache): return [program, "--errand", "get", url.absoluteString, cache.path]
        case .fetch(let url, let file): return [program, "--errand", "fetch", url.absoluteString, file.path]
        }
    }

    func run() async throws {
        switch self {
        case .get(let url, let cache): try await get(url, cache: cache)
        case .fetch(let url, let file): try await fetch(url, to: file)
        }
    }

    private func get(_ url: URL, cache directory: URL) async throws {
        let cache = try await MediaCache(directory: directory, upstream: HTTPUpstream.standard())
        let media = cache.media(for: url)
        for try await chunk in media.reader() { blackHole(chunk) }
        guard let length = try await media.contentInformation().length, media.landed.contains(0..<length) else {
            throw BenchmarkError("\(url) did not land whole")
        }
        await cache.close()
    }

    private func fetch(_ url: URL, to file: URL) async throws {
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

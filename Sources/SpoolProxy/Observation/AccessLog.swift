#if Proxy
import Dispatch
import Foundation
import Synchronization

/// A file with one line of JSON for each request.
///
/// The lines are written on a separate queue, so that no client waits for the disk. They do not contain queries or
/// tokens, which may be secrets.
final class AccessLog: Sendable {
    /// A request and its outcome.
    struct Entry: Sendable {
        var client: String
        var method: String
        var path: String
        var status: Int
        /// The offset of the body's first byte in the resource, or `nil` if it is unknown.
        var offset: Int64?
        /// The length of the resource, or `nil` if it is unknown.
        var length: Int64?
        /// The number of body bytes that were sent.
        var bytes: Int
        var duration: Duration
        /// The action of the cache, or `nil` if the response is not from the cache.
        var cacheOutcome: CacheStatus.Outcome?
        /// The value of the `Cache-Status` field.
        var cacheStatus: String?
        var outcome: SendOutcome
    }

    private struct Line: Encodable {
        var time: String
        var client: String
        var method: String
        var path: String
        var status: Int
        var offset: Int64?
        var length: Int64?
        var bytes: Int
        var milliseconds: Double
        var cache: String?
        var cut: String?
    }

    /// The maximum number of lines that may wait for the disk. Further lines are discarded.
    static let waitingLimit = 10_000

    let queue = DispatchQueue(label: "spool.proxy.log", qos: .utility)
    private let waiting = Atomic<Int>(0)
    private let file: FileHandle
    private let now: @Sendable () -> Date

    /// Opens the file for appending. If the file does not exist, it is created so that only its owner can access it.
    ///
    /// - Throws: ``ProxyError`` with code `configuration` if the file cannot be opened.
    init(_ url: URL, now: @escaping @Sendable () -> Date = { Date() }) throws(ProxyError) {
        self.now = now
        let descriptor = open(url.path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            let cause = String(cString: strerror(errno)).lowercased()
            throw ProxyError(.configuration, "the access log \(url.path) can't be written: \(cause)")
        }
        file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    /// Adds an entry. The call returns before the entry is written.
    func write(_ entry: Entry) {
        guard waiting.add(1, ordering: .relaxed).newValue <= Self.waitingLimit else {
            waiting.subtract(1, ordering: .relaxed)
            return
        }
        let time = now()
        queue.async { [self] in
            defer { waiting.subtract(1, ordering: .relaxed) }
            var cut: String?
            if case .cut(let reason) = entry.outcome { cut = reason }
            let line = Line(
                time: time.formatted(.iso8601), client: entry.client, method: entry.method, path: entry.path,
                status: entry.status, offset: entry.offset, length: entry.length, bytes: entry.bytes,
                milliseconds: (entry.duration / .milliseconds(1)),
                cache: entry.cacheStatus, cut: cut)
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            guard var data = try? encoder.encode(line) else { return }  // Numbers and text can always be encoded.
            data.append(0x0A)
            try? file.write(contentsOf: data)  // If the disk is full, lines are lost.
        }
    }

    /// Waits until all lines have been written.
    func flush() { queue.sync {} }
}
#endif

#if Proxy
import Foundation
import NIOCore
import Spool

/// The first message to a live page.
struct DashboardHello: Encodable, Sendable {
    /// The version of Spool.
    var version: String
    /// The time at which the server started.
    var started: Date
    /// The number of the last entry in the log.
    var lastID: Int
    /// Whether all entries after `Last-Event-ID` follow.
    var isComplete: Bool
}

/// The last message to a live page whose stream the server ends.
struct DashboardEnd: Encodable, Sendable {
    /// A sentence that states why the stream ends.
    var reason: String

    /// The message for a stream that ends because too many streams are open.
    static let limit = DashboardEnd(
        reason: "too many live pages are open; the limit is \(DashboardFeed.clientLimit)")
}

/// The identifier of an event: the run of the server, and the number of a log entry.
///
/// The numbers start over when the server restarts, so only the run makes an identifier unique.
struct EventIdentifier: Sendable, Hashable, CustomStringConvertible {
    var run: String
    var entry: Int

    var description: String { "\(run)-\(entry)" }

    init(run: String, entry: Int) { (self.run, self.entry) = (run, entry) }

    /// Parses an identifier. The result is `nil` if the text is not an identifier.
    init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let entry = Int(parts[1]) else { return nil }
        self.init(run: String(parts[0]), entry: entry)
    }
}

/// A message to the live pages: the current totals and activity, and the changes since the last message.
struct DashboardUpdate: Encodable, Sendable {
    /// A running request to an origin.
    struct Transfer: Encodable, Sendable, Equatable {
        var id: Int
        /// The hash of the cache key.
        var key: String
        /// The scheme, the host and the path.
        var url: String
        /// The offset of the first byte.
        var start: Int64
        /// The offset of the next byte.
        var position: Int64
        /// The offset after the last byte, or `null` if it is unknown.
        @EncodedAsNull var end: Int64?
        var bytesPerSecond: Int64
    }

    /// An open reader.
    struct Reader: Encodable, Sendable, Equatable {
        var id: Int
        /// The hash of the cache key.
        var key: String
        /// The offset of the next byte.
        var position: Int64
        var isWaiting: Bool
    }

    /// A range that was evicted.
    struct Evicted: Encodable, Sendable {
        /// The hash of the cache key.
        var key: String
        /// The offset of the first byte, and the offset after the last one.
        var range: [Int64]
    }

    /// The maximum number of entries in ``transfers``, ``readers``, ``changed``, ``evictedRanges`` and ``log``.
    static let transferLimit = 100
    static let readerLimit = 100
    static let changeLimit = 100
    static let evictionLimit = 200
    static let logLimit = 200

    var time: Date
    var totals: DashboardTotals
    /// The running requests to origins. If there are too many to report, those that are receiving bytes come first.
    var transfers: [Transfer]
    /// The number of running requests to origins.
    var transferCount: Int
    /// The open readers. If there are too many to report, those that are not waiting come first.
    var readers: [Reader]
    /// The number of open readers that are waiting for bytes.
    var waitingCount: Int
    /// The resources that changed.
    var changed: [DashboardResource] = []
    /// The keys of resources that are no longer stored.
    var removed: [String] = []
    var evictedRanges: [Evicted] = []
    var log: [DashboardLogEntry] = []

    /// Returns whether there is anything that `previous` did not report.
    func differs(from previous: DashboardUpdate?) -> Bool {
        guard let previous else { return true }
        return !(changed.isEmpty && removed.isEmpty && evictedRanges.isEmpty && log.isEmpty)
            || totals != previous.totals || transfers != previous.transfers || readers != previous.readers
            || transferCount != previous.transferCount || waitingCount != previous.waitingCount
    }
}

/// A message in the format of server-sent events (HTML standard, §9.2.5).
enum ServerSentEvent {
    /// A comment, which clients ignore.
    static let comment = ByteBuffer(staticString: ":\n\n")

    /// Returns a message with a value as JSON.
    ///
    /// - Parameter id: The identifier with which a client resumes, or `nil` if the message does not change it.
    static func message(_ name: String, _ value: some Encodable, id: String?, start: String = "") throws -> ByteBuffer {
        let data = try DashboardJSON.data(value)
        var buffer = ByteBuffer()
        buffer.writeString(start)
        if let id { buffer.writeString("id: \(id)\n") }
        buffer.writeString("event: \(name)\ndata: ")
        buffer.writeBytes(data)
        buffer.writeString("\n\n")
        return buffer
    }
}

/// The format of all JSON for the live page.
enum DashboardJSON {
    /// Returns a value as JSON on one line, with times in UTC with milliseconds.
    static func data(_ value: some Encodable, isPretty: Bool = false) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        if isPretty { encoder.outputFormatting.insert(.prettyPrinted) }
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            try container.encode(date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true)))
        }
        return try encoder.encode(value)
    }
}
#endif

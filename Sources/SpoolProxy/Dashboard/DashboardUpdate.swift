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
        @OrNull var end: Int64?
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
        /// The offsets of the first byte and after the last one.
        var range: [Int64]
    }

    /// The maximum number of entries in ``changed``, ``evictedRanges`` and ``log``.
    static let changeLimit = 100
    static let evictionLimit = 200
    static let logLimit = 200

    var time: Date
    var totals: DashboardTotals
    var transfers: [Transfer]
    var readers: [Reader]
    /// The resources that changed.
    var changed: [DashboardResource] = []
    /// The keys of resources that are no longer stored.
    var removed: [String] = []
    var evictedRanges: [Evicted] = []
    var log: [DashboardLogEntry] = []

    /// Whether there is anything that `previous` did not report.
    func differs(from previous: DashboardUpdate?) -> Bool {
        guard let previous else { return true }
        return !(changed.isEmpty && removed.isEmpty && evictedRanges.isEmpty && log.isEmpty)
            || totals != previous.totals || transfers != previous.transfers || readers != previous.readers
    }
}

/// A message in the format of server-sent events (HTML standard, §9.2.5).
enum ServerSentEvent {
    /// A comment, which clients ignore.
    static let comment = ByteBuffer(staticString: ":\n\n")

    /// Returns a message with a value as JSON.
    ///
    /// - Parameter id: The number with which a client resumes, or `nil` if the message does not change it.
    static func message(_ name: String, _ value: some Encodable, id: Int?, start: String = "") throws -> ByteBuffer {
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

/// The format of all JSON of the live page.
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

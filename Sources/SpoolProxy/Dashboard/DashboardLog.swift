#if Proxy
import ByteRanges
import Foundation
import Spool
import SpoolStorage

/// An entry in the log of the live page.
struct DashboardLogEntry: Encodable, Sendable {
    /// A number that increases with each entry.
    var id: Int
    var time: Date
    /// The kind of event.
    var kind: String
    /// The hash of the cache key, or `null` for an event that concerns the whole cache.
    @EncodedAsNull var key: String?
    /// The scheme, the host and the path. For an event that concerns the whole cache, it is the path of the directory.
    var url: String
    /// A sentence that describes the event.
    var message: String
    /// The code of an error.
    @EncodedAsNull var code: String?
    /// The offset of the first byte, and the offset after the last one.
    @EncodedAsNull var range: [Int64?]?

    /// The kinds of errors, warnings and waits. The page has the same list, in `connection.js`.
    private static let problems: Set<String> = [
        "failed", "retrying", "notCached", "inconsistentResponse", "damagedBlocksDiscarded", "cacheUnavailable",
        "warning", "originChanged", "waited",
    ]

    /// Whether the entry is an error, a warning or a wait.
    var isProblem: Bool { Self.problems.contains(kind) }

    /// Creates the entry for an event.
    ///
    /// - Returns: The entry, or `nil` for an event about stored bytes. Such events are not in the log.
    init?(_ event: CacheEvent, id: Int, at time: Date) {
        var (code, range): (CacheError.Code?, [Int64?]?)
        switch event.kind {
        case .stored: return nil
        case .requested(let lower, let upper):
            (kind, range) = ("requested", [lower, upper])
            message = "\((lower..<max(lower, upper ?? .max)).inWords) requested from the origin"
        case .requestCancelled(let offset):
            (kind, range) = ("requestCancelled", [offset, nil])
            message = "the request was cancelled at byte \(offset.grouped), because no reader needed it anymore"
        case .retrying(let delay, let cause):
            (kind, code) = ("retrying", cause.code)
            message = "the request will be retried in \(Self.text(delay)): \(cause.message)"
        case .originChanged(let reason):
            (kind, message) = ("originChanged", "the origin has a different version: \(reason)")
        case .inconsistentResponse(let text): (kind, message) = ("inconsistentResponse", text)
        case .damagedBlocksDiscarded(let damaged):
            (kind, range) = ("damagedBlocksDiscarded", [damaged.lowerBound, damaged.upperBound])
            message = "stored \(damaged.inWords) were damaged, and are fetched again when they are needed"
        case .notCached(let cause):
            (kind, code, message) = ("notCached", cause.code, "the bytes are not stored: \(cause.message)")
        case .evicted(let bytes): (kind, message) = ("evicted", "\(bytes.counted("byte")) evicted")
        case .completed: (kind, message) = ("completed", "all bytes are stored")
        case .failed(let error): (kind, code, message) = ("failed", error.code, error.message)
        case .bypassed(let reason): (kind, message) = ("bypassed", "the media plays without the cache: \(reason)")
        case .cacheUnavailable(let cause):
            (kind, code, message) = ("cacheUnavailable", cause.code, "nothing can be stored: \(cause.message)")
        case .warning(let text): (kind, message) = ("warning", text)
        }
        (self.id, self.time, url) = (id, time, event.redactedURL)
        _key = EncodedAsNull(wrappedValue: event.key?.hash)
        _code = EncodedAsNull(wrappedValue: code.map { "\($0)" })
        _range = EncodedAsNull(wrappedValue: range)
    }

    /// Creates the entry for a reader's wait.
    init(_ wait: ReaderWait, id: Int) {
        (self.id, time, kind, url, message) = (id, wait.date, "waited", wait.redactedURL, wait.message)
        _key = EncodedAsNull(wrappedValue: wait.key.hash)
        _code = EncodedAsNull(wrappedValue: wait.cause.rawValue)
        _range = EncodedAsNull(wrappedValue: [wait.offset, nil])
    }

    /// Creates the entry for a preload that was cancelled because its resource is being removed.
    init(cancelledPreload url: String, _ key: CacheKey, id: Int, at time: Date) {
        (self.id, self.time, self.url, kind) = (id, time, url, "preloadCancelled")
        message = "the preload was cancelled, because the resource is being removed"
        _key = EncodedAsNull(wrappedValue: key.hash)
        _code = EncodedAsNull(wrappedValue: nil)
        _range = EncodedAsNull(wrappedValue: nil)
    }

    private static func text(_ delay: Duration) -> String {
        let tenths = Int64(saturating: (delay / .milliseconds(100)).rounded())
        return "\(tenths / 10).\(tenths % 10) s"
    }
}
#endif

#if Proxy
import ByteRanges
import Foundation
import HTTPTypes
import Spool

/// One stored resource, with details that are not in the list.
struct DashboardDetails: Encodable, Sendable {
    private enum CodingKeys: String, CodingKey {
        case validator, headers, freshness, parts, mediaURL, duration, requests, waits
    }

    /// Whether the stored response may be used without a request to the origin.
    struct Freshness: Encodable, Sendable {
        /// `fresh`, `stale` or `unknown`.
        var state: String
        /// The time at which the response becomes or became stale.
        @EncodedAsNull var until: Date?

        init(_ freshness: StoredDetails.Freshness) {
            switch freshness {
            case .fresh(let until): (state, _until) = ("fresh", EncodedAsNull(wrappedValue: until))
            case .stale(let since): (state, _until) = ("stale", EncodedAsNull(wrappedValue: since))
            case .unknown: (state, _until) = ("unknown", EncodedAsNull(wrappedValue: nil))
            }
        }
    }

    /// The maximum number of entries in ``parts``, ``requests`` and ``waits``.
    static let partLimit = 2000
    static let requestLimit = 200
    static let waitLimit = 50

    let resource: DashboardResource
    let details: StoredDetails
    /// The files of a stream, by URL.
    let parts: [DashboardResource]
    /// The path at which the server provides the resource, or `nil` if it is unknown.
    let mediaURL: String?
    /// The duration in seconds, or `nil` if it is unknown.
    let duration: Double?
    let requests: [OriginRequestReport]
    let waits: [WaitReport]

    func encode(to encoder: any Encoder) throws {
        try resource.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(EncodedAsNull(wrappedValue: details.resource.validator), forKey: .validator)
        try container.encode(Self.headers(details.fields), forKey: .headers)
        try container.encode(Freshness(details.freshness), forKey: .freshness)
        try container.encode(parts, forKey: .parts)
        try container.encode(EncodedAsNull(wrappedValue: mediaURL), forKey: .mediaURL)
        try container.encode(EncodedAsNull(wrappedValue: duration), forKey: .duration)
        try container.encode(requests, forKey: .requests)
        try container.encode(waits, forKey: .waits)
    }

    /// Returns the header fields that contain neither credentials nor URLs.
    ///
    /// Other fields may contain anything, such as a signed URL. Therefore, they are not shown.
    static func headers(_ fields: HTTPFields) -> [String: String] {
        var headers: [String: String] = [:]
        for field in fields where shownFields.contains(field.name.canonicalName) {
            headers[field.name.canonicalName] =
                headers[field.name.canonicalName].map { $0 + ", " + field.value }
                ?? field.value
        }
        return headers
    }

    private static let shownFields: Set<String> = [
        "accept-ranges", "age", "cache-control", "cache-tag", "cdn-cache-control", "content-digest",
        "content-encoding", "content-language", "content-type", "date", "digest", "etag", "expires",
        "last-modified", "repr-digest", "server", "surrogate-control", "surrogate-key", "vary", "via", "x-cache",
    ]
}

/// A request to an origin.
struct OriginRequestReport: Encodable, Sendable {
    var id: Int
    /// The hash of the cache key.
    var key: String
    /// The scheme, the host and the path.
    var url: String
    /// The offset of the first requested byte.
    var start: Int64
    /// The offset after the last requested byte, or `null` for the end of the resource.
    @EncodedAsNull var end: Int64?
    /// The number of received bytes.
    var bytes: Int64
    @EncodedAsNull var status: Int?
    var started: Date
    @EncodedAsNull var firstByteSeconds: Double?
    /// The duration in seconds, or `null` while the request is running.
    @EncodedAsNull var seconds: Double?
    /// `running`, `complete`, `cancelled` or `failed`.
    var outcome: String
    @EncodedAsNull var message: String?

    init(_ record: OriginRequestRecord) {
        (id, key, url) = (record.id, record.key.hash, record.redactedURL)
        (start, bytes, started, outcome) = (record.start, record.byteCount, record.date, record.outcome.rawValue)
        _end = EncodedAsNull(wrappedValue: record.end)
        _status = EncodedAsNull(wrappedValue: record.status)
        _firstByteSeconds = EncodedAsNull(wrappedValue: record.firstByteSeconds)
        _seconds = EncodedAsNull(wrappedValue: record.seconds)
        _message = EncodedAsNull(wrappedValue: record.message)
    }
}

/// A long wait by a reader for bytes.
struct WaitReport: Encodable, Sendable {
    var id: Int
    /// The end of the wait.
    var time: Date
    /// The hash of the cache key.
    var key: String
    /// The scheme, the host and the path.
    var url: String
    /// The offset of the byte that the reader needed.
    var offset: Int64
    var seconds: Double
    /// `slowOrigin`, `retry`, `evicted` or `notStored`.
    var cause: String
    /// A sentence that states the cause.
    var message: String

    init(_ wait: ReaderWait) {
        (id, time, key, url) = (wait.id, wait.date, wait.key.hash, wait.redactedURL)
        (offset, seconds, cause, message) = (wait.offset, wait.seconds, wait.cause.rawValue, wait.message)
    }
}

extension ReaderWait {
    /// A sentence that states how long a player waited, and why.
    var message: String {
        let tenths = Int64(saturating: (min(seconds, 1e9) * 10).rounded())
        let reason =
            switch cause {
            case .slowOrigin: "the response was slow"
            case .retry: "the request to the origin failed and was retried"
            case .evicted: "it was evicted and had to be fetched again"
            case .notStored: "it was not stored and no request was running"
            }
        return "a player waited \(tenths / 10).\(tenths % 10) s for byte \(offset.grouped), because \(reason)"
    }
}
#endif

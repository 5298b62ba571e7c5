public import ByteRanges
public import SpoolStorage

/// The stored ranges, length and last error of a resource, for a progress bar or a list of episodes.
public struct ResourceState: Sendable, Equatable {
    /// The stored ranges. They can be read without a request to the origin, unless the version has to be validated.
    public var storedRanges: ByteRangeSet
    /// The length of the resource in bytes; `nil` before a response states it.
    public var length: Int64?
    /// The last error that waiting readers received, or `nil` if bytes have been received since.
    public var failure: CacheError?

    /// Creates a state, for previews and tests.
    public init(storedRanges: ByteRangeSet, length: Int64?, failure: CacheError? = nil) {
        self.storedRanges = storedRanges
        self.length = length
        self.failure = failure
    }

    /// The number of stored bytes.
    public var storedByteCount: Int64 { storedRanges.byteCount }

    /// The stored fraction, from 0 to 1; `nil` while the length is unknown.
    public var fractionCompleted: Double? {
        length.map { $0 > 0 ? min(Double(storedByteCount) / Double($0), 1) : 1 }
    }

    /// Whether every byte is stored.
    public var isComplete: Bool { length.map { storedRanges.contains(0..<$0) } ?? false }

    /// Returns whether both values describe the same state.
    public static func == (left: ResourceState, right: ResourceState) -> Bool {
        left.length == right.length && left.storedRanges == right.storedRanges
            && left.failure?.code == right.failure?.code && left.failure?.message == right.failure?.message
    }
}

/// The counts of bytes received and delivered since a cache was created or a resource was opened, to show how much the
/// cache saves.
public struct TransferStatistics: Sendable, Hashable {
    /// The number of body bytes received from origins.
    public var bytesFromOrigin: Int64 = 0
    /// The number of bytes delivered from the cache. The first delivery of a received byte does not count, but each
    /// later delivery does.
    public var bytesFromCache: Int64 = 0
    /// The number of bytes delivered to readers.
    public var bytesServed: Int64 = 0
    /// The number of requests to origins, including retries and revalidations.
    public var originRequests: Int = 0
    /// The number of received bytes that were stored in the cache. Bytes that were only in memory do not count.
    public var bytesStored: Int64 = 0
    /// The number of received bytes that became readable, in the cache or only in memory.
    package var freshBytes: Int64 = 0

    /// Creates statistics in which all counts are zero.
    package init() {}

    static func += (left: inout TransferStatistics, right: TransferStatistics) {
        left.bytesFromOrigin += right.bytesFromOrigin
        left.bytesFromCache += right.bytesFromCache
        left.bytesServed += right.bytesServed
        left.originRequests += right.originRequests
        left.bytesStored += right.bytesStored
        left.freshBytes += right.freshBytes
    }
}

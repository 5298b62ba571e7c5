/// What was sent and handed over since a cache was made, or since a resource was opened: how much the cache has saved.
public struct TransferStatistics: Sendable, Hashable {
    /// Body bytes received from origins.
    public var bytesFromOrigin: Int64 = 0
    /// Bytes handed to readers that were not freshly landed for them: a later read of the same byte counts here.
    public var bytesFromCache: Int64 = 0
    /// Bytes handed to readers in all.
    public var bytesServed: Int64 = 0
    /// Requests sent to origins, retries and revalidations included.
    public var originRequests: Int = 0
    /// Bytes that have landed.
    public var bytesLanded: Int64 = 0

    /// Zero counts.
    package init() {}

    static func += (left: inout TransferStatistics, right: TransferStatistics) {
        left.bytesFromOrigin += right.bytesFromOrigin
        left.bytesFromCache += right.bytesFromCache
        left.bytesServed += right.bytesServed
        left.originRequests += right.originRequests
        left.bytesLanded += right.bytesLanded
    }
}

public import Foundation

/// Where a delegate hands over bytes of a resource, in order, as they come.
open class AVAssetResourceLoadingDataRequest: NSObject {
    private let record: LoadingRequestRecord

    init(record: LoadingRequestRecord) {
        self.record = record
        super.init()
    }

    /// The first byte that is wanted.
    open var requestedOffset: Int64 { record.requestedOffset }

    /// How many bytes are wanted; `Int.max` when the player does not know the length of the resource, so a sum with
    /// ``requestedOffset`` may overflow. To be disregarded with ``requestsAllDataToEndOfResource``.
    open var requestedLength: Int { record.requestedLength.map { Int(clamping: $0) } ?? .max }

    /// Whether everything from ``requestedOffset`` to the end, a failure or the cancel is wanted.
    open var requestsAllDataToEndOfResource: Bool { record.toEnd }

    /// Where the next byte belongs that is handed over: ``requestedOffset`` at first.
    ///
    /// Players' documentation is silent on its value before the first byte, and some adapters expect 0 there; see
    /// ``ResourceLoaderDriver``.
    open var currentOffset: Int64 { record.currentOffset }

    /// Hands over the next bytes. May be called many times, from any thread, one call at a time.
    ///
    /// The data may be kept for long: do not write into its storage afterwards.
    open func respond(with data: Data) {
        record.respond(with: data)
    }
}

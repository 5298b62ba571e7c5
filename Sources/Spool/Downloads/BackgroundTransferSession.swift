public import Foundation
public import HTTPTypes
public import SpoolStorage

/// A system service that fetches ranges of media as files, even while the app is suspended or not running.
///
/// On Apple platforms, `BackgroundURLSession` conforms to this protocol. A session neither decides what to fetch nor
/// evaluates responses. ``Downloads/handOver(to:chunkSize:maximumTransfers:)`` and ``Downloads/takeBack(from:)`` do
/// both. The methods may be called from any task.
public protocol BackgroundTransferSession: Sendable {
    /// Starts a transfer that continues without the app.
    ///
    /// The session keeps ``BackgroundTransferRequest/identifier`` with the transfer, even after the app has been
    /// relaunched. The session sends the header fields unchanged.
    ///
    /// - Throws: An error if the transfer can't be started. The app's own downloads then have to fetch the bytes.
    func start(_ request: BackgroundTransferRequest) async throws

    /// Returns all transfers that have not been removed, including transfers from previous launches.
    func transfers() async -> [BackgroundTransfer]

    /// Cancels a running transfer, or deletes the file of a finished transfer. Does nothing if there is no such
    /// transfer.
    func remove(_ identifier: String) async
}

/// A request that a ``BackgroundTransferSession`` sends for a part of a resource.
public struct BackgroundTransferRequest: Sendable {
    /// The text that identifies the transfer, even after a relaunch.
    ///
    /// The text contains the cache key, the range, the length and the validator, but neither a URL nor credentials.
    public var identifier: String
    /// The URL to request.
    public var url: URL
    /// All header fields to send, including `Range`, `If-Range` and the credentials of the source.
    public var headerFields: HTTPFields
    /// The conditions of the downloads; see ``Downloads/conditions``. The value is `nil` if there are no conditions.
    public var conditions: PreloadConditions?

    /// Creates a request for a background transfer.
    public init(
        identifier: String, url: URL, headerFields: HTTPFields = [:], conditions: PreloadConditions? = nil
    ) {
        self.identifier = identifier
        self.url = url
        self.headerFields = headerFields
        self.conditions = conditions
    }
}

/// A transfer in a ``BackgroundTransferSession``.
public struct BackgroundTransfer: Sendable {
    /// The state of a transfer.
    #if hasAttribute(nonexhaustive)
    @nonexhaustive
    #endif
    public enum State: Sendable {
        /// The transfer is waiting, or is receiving bytes.
        case running
        /// The response was received. The values are the status and header fields of the response, and the file that
        /// contains the body.
        case finished(HTTPResponse, file: URL)
        /// No complete response was received.
        case failed(any Error)
    }

    /// The identifier of the transfer's request.
    public var identifier: String
    /// The state of the transfer.
    public var state: State

    /// Creates a transfer with a state and the identifier of its request.
    public init(identifier: String, state: State) {
        self.identifier = identifier
        self.state = state
    }

    /// Whether the transfer is waiting, or is receiving bytes.
    var isRunning: Bool { if case .running = state { true } else { false } }
}

/// The result of ``Downloads/handOver(to:chunkSize:maximumTransfers:)`` or ``Downloads/takeBack(from:)``.
public struct BackgroundTransferReport: Sendable {
    /// The number of bytes that were stored from received files.
    public internal(set) var storedByteCount: Int64 = 0
    /// The number of transfers that were started.
    public internal(set) var startedCount = 0
    /// The reasons why received files were discarded, or why transfers failed. Each error names the media and the
    /// range. The bytes of that range have to be fetched again.
    public internal(set) var discarded: [CacheError] = []
    /// The reasons why media was not handed over. Only the app's own downloads can fetch this media.
    public internal(set) var notHandedOver: [CacheError] = []
}

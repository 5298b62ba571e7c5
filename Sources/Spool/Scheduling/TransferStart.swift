import SpoolScheduling

/// The start of a transfer: the request to send, and its properties.
struct TransferStart: Sendable {
    var id: TransferID
    var lower: Int64
    /// The exclusive end of the request, or `nil` for the end of the resource.
    var upper: Int64?
    /// Whether the range is requested, rather than the whole resource.
    var isRange = true
    /// The credentials of the reader that caused the request.
    var credentials: SourceCredentials
    var priority: Priority
    /// Whether the reader that caused the request allows its bytes to be stored.
    var mayKeep = true

    /// The requested range. It ends at `Int64.max` if the end is not known.
    var range: Range<Int64> { lower..<max(lower, upper ?? .max) }

    /// The requested range, in words.
    var rangeInWords: String { range.inWords }
}

extension TransferStart {
    /// Creates the start of a transfer for a reader. If that reader has been closed, the credentials and the storage
    /// permission of the last opened reader apply, and the priority is that of playback.
    init(_ id: TransferID, lower: Int64, upper: Int64?, for reader: ReaderID, in state: borrowing Scheduler.State) {
        let reader = state.readers[reader]
        self.init(
            id: id, lower: lower, upper: upper,
            isRange: upper != nil || state.machine.rangeSupport != .unsupported,
            credentials: reader?.credentials ?? state.credentials, priority: reader?.priority ?? .playback,
            mayKeep: reader?.mayKeep ?? state.mayKeep)
    }
}

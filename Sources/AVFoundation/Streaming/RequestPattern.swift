import Foundation

/// Which loading requests a player makes, and when it calls them off, given what its demuxer reads.
///
/// Pure: no lock, clock or I/O. ``MediaStream`` is the shell of whichever it is given. A seek is acted on when the
/// demuxer reads there, since demuxers jump about without reading.
protocol RequestPattern: Sendable {
    typealias Action = LoadingAction
    typealias ReadResult = LoadingReadResult

    /// What the delegate has said of the resource.
    var contentInformation: ContentInformation? { get }
    /// Where the resource ends, once that is known.
    var endOfResource: Int64? { get }
    var hasFailed: Bool { get }
    /// Whether the demuxer waits for bytes.
    var isReadWaiting: Bool { get }
    /// Whether a read waits although a seek should have ended it: the seek has not come to the stream.
    var isReadStuck: Bool { get }

    /// A demuxer is about to open the stream.
    mutating func open() -> [Action]
    /// Whether the information is there: `.bytes` with none once it is.
    mutating func opening() -> ReadResult
    /// The demuxer is gone; what still comes is of no use. Nothing is called off, as with Apple's.
    mutating func close() -> [Action]
    /// Loads the beginning before anyone reads it.
    mutating func prebuffer() -> [Action]
    /// The media takes so many bytes for a second of playing.
    mutating func learned(bytesPerSecond: Double, secondsAhead: Double?)
    /// The demuxer seeks.
    mutating func seek(to offset: Int64)
    /// The demuxer wants up to `limit` bytes at its position.
    mutating func read(limit: Int) -> (ReadResult, [Action])
    /// The player is about to seek.
    mutating func expectSeek()
    /// Makes a read that waits return, unless the seek has come to the stream already: then the read is the new
    /// place's own. True if a read was made to return.
    mutating func interrupt() -> (Bool, [Action])
    mutating func received(_ data: Data, token: Int) -> [Action]
    mutating func finished(token: Int, information: ContentInformation?) -> [Action]
    mutating func failed(token: Int) -> [Action]
}

/// A step for the shell of a ``RequestPattern``.
enum LoadingAction: Sendable, Equatable {
    case askInformation(token: Int)
    case askData(token: Int, offset: Int64, length: Int64?, toEnd: Bool)
    case cancel(token: Int)
    case wakeReader
}

/// What a demuxer gets for a read.
enum LoadingReadResult: Sendable, Equatable {
    case bytes(Data)
    /// Nothing yet: ask again after a ``LoadingAction/wakeReader``.
    case wait
    case endOfResource
    /// A seek is under way: what is read now is of no use.
    case interrupted
    case failed
}

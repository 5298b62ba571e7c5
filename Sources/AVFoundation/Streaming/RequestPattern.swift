import Foundation

/// The rules by which a player sends and cancels loading requests, based on the reads of its demuxer.
///
/// A pattern only makes decisions, without a lock, a clock or I/O. ``MediaStream`` performs the actions. A seek takes
/// effect with the first read after it, because demuxers also seek without reading.
protocol RequestPattern: Sendable {
    typealias Action = LoadingAction
    typealias ReadResult = LoadingReadResult

    /// The delegate's information about the resource.
    var contentInformation: ContentInformation? { get }
    /// The end of the resource, if it is known.
    var endOfResource: Int64? { get }
    var hasFailed: Bool { get }
    /// Whether the demuxer is waiting for bytes.
    var isReadWaiting: Bool { get }
    /// Whether a read is still waiting even though a seek should have ended it, because the seek has not reached the
    /// stream.
    var isReadStuck: Bool { get }

    /// Prepares for a demuxer that opens the stream.
    mutating func open() -> [Action]
    /// Returns `.bytes` with empty data if the stream is open and the information is available; otherwise, `.wait` or
    /// `.failed`.
    mutating func opening() -> ReadResult
    /// Closes the stream, because the demuxer no longer needs bytes. As with Apple's player, requests are not
    /// cancelled.
    mutating func close() -> [Action]
    /// Loads the start of the resource before the first read.
    mutating func prebuffer() -> [Action]
    /// Sets the bit rate of the media, and the number of seconds that the app prefers to read ahead, if any.
    mutating func learned(bytesPerSecond: Double, secondsAhead: Double?)
    /// Handles a seek by the demuxer.
    mutating func seek(to offset: Int64)
    /// Handles a read of up to `limit` bytes at the demuxer's position.
    mutating func read(limit: Int) -> (ReadResult, [Action])
    /// Records that the player is about to seek.
    mutating func expectSeek()
    /// Ends a waiting read, unless the seek has already reached the stream, in which case the read is for the seek's
    /// target. Returns `true` if a read was ended.
    mutating func interrupt() -> (Bool, [Action])
    mutating func received(_ data: Data, token: Int) -> [Action]
    mutating func finished(token: Int, information: ContentInformation?) -> [Action]
    mutating func failed(token: Int) -> [Action]
}

/// An action for ``MediaStream`` to perform.
enum LoadingAction: Sendable, Equatable {
    case requestInformation(token: Int)
    case askData(token: Int, offset: Int64, length: Int64?, toEnd: Bool)
    case cancel(token: Int)
    case wakeReader
}

/// The result of a demuxer's read.
enum LoadingReadResult: Sendable, Equatable {
    case bytes(Data)
    /// No bytes are available yet. Read again after a ``LoadingAction/wakeReader``.
    case wait
    case endOfResource
    /// A seek is in progress, so the bytes are no longer needed.
    case interrupted
    case failed
}

/// The bytes that a delegate has delivered and the player has not used yet. They form one range of the resource.
///
/// The buffer retains the pieces as delivered, without copying them. Ranges are half-open ranges of byte offsets in the
/// resource.
struct StreamBuffer: Sendable {
    private(set) var start: Int64 = 0
    private(set) var end: Int64 = 0
    private var pieces: [Piece] = []
    /// The index in `pieces` of the first buffered piece. Earlier pieces are removed from time to time.
    private var first = 0

    private struct Piece: Sendable {
        var offset: Int64
        var data: Data
        var end: Int64 { offset + Int64(data.count) }
    }

    /// The number of buffered bytes.
    var count: Int64 { end - start }

    func contains(_ offset: Int64) -> Bool { offset >= start && offset < end }

    /// Removes all bytes and starts again at `offset`.
    mutating func reset(at offset: Int64) {
        self = StreamBuffer()
        start = offset
        end = offset
    }

    /// Appends bytes at the end.
    mutating func append(_ data: Data) {
        guard !data.isEmpty else { return }
        pieces.append(Piece(offset: end, data: data))
        end += Int64(data.count)
    }

    /// Returns up to `limit` bytes at `offset` from one piece, or `nil` if the byte at `offset` is not buffered.
    func bytes(at offset: Int64, limit: Int) -> Data? {
        guard contains(offset), limit > 0 else { return nil }
        var low = first
        var high = pieces.count - 1
        while low < high {
            let middle = (low + high + 1) / 2
            if pieces[middle].offset <= offset { low = middle } else { high = middle - 1 }
        }
        let piece = pieces[low]
        return piece.data.dropFirst(Int(offset - piece.offset)).prefix(limit)
    }

    /// Releases whole pieces that end at or before `offset`.
    mutating func drop(before offset: Int64) {
        while first < pieces.count, pieces[first].end <= offset {
            start = pieces[first].end
            pieces[first].data = Data()
            first += 1
        }
        if first == pieces.count { start = end }
        if first > 64, first * 2 > pieces.count {
            pieces.removeFirst(first)
            first = 0
        }
    }
}

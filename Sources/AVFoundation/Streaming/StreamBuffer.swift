import Foundation

/// The bytes that a delegate has handed over and the player has not used up: one stretch of the resource.
///
/// Keeps the pieces as they came, without copying. Offsets are bytes of the resource, half-open.
struct StreamBuffer: Sendable {
    private(set) var start: Int64 = 0
    private(set) var end: Int64 = 0
    private var pieces: [Piece] = []
    /// Index in `pieces` of the first that is still held; those before are gone and are swept now and then.
    private var first = 0

    private struct Piece: Sendable {
        var offset: Int64
        var data: Data
        var end: Int64 { offset + Int64(data.count) }
    }

    /// How many bytes are held.
    var count: Int64 { end - start }

    func contains(_ offset: Int64) -> Bool { offset >= start && offset < end }

    /// Forgets everything and begins anew at `offset`.
    mutating func reset(at offset: Int64) {
        self = StreamBuffer()
        start = offset
        end = offset
    }

    /// Adds bytes at the end.
    mutating func append(_ data: Data) {
        guard !data.isEmpty else { return }
        pieces.append(Piece(offset: end, data: data))
        end += Int64(data.count)
    }

    /// Up to `limit` bytes from `offset` on, out of one piece; nil when the first of them is not held.
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

    /// Lets go of whole pieces that end at or before `offset`.
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

import ByteRanges
import HTTPRanges

extension Transfer {
    /// A counter of the bytes in a response body, which decides where each piece is stored.
    ///
    /// The header fields have already been evaluated. Here, the body is compared with their values.
    struct StateMachine: ~Copyable {
        /// The action for a piece of the body.
        enum ChunkAction: Equatable {
            /// Store `count` bytes after the first `skip` bytes of the piece at `offset`.
            case store(skip: Int, count: Int, at: Int64)
            /// Skip the whole piece, because it is before the first byte to store.
            case skip
            /// Stop, because the rest of the body is not needed, or is longer than the header fields state.
            case stop
        }

        /// The meaning of the end of a body.
        enum EndAction: Equatable {
            /// All bytes that the header fields state, or all needed bytes, were received.
            case complete
            /// A body of unknown length has ended, so the resource ends here.
            case endOfResource(at: Int64)
            /// Fewer bytes were received than the header fields state.
            case interrupted(at: Int64)
        }

        /// The offset of the next byte of the body.
        private(set) var position: Int64
        /// The exclusive end of the body, or `nil` if it is not known.
        let end: Int64?
        /// The offset of the first byte to store.
        let firstStoredOffset: Int64
        /// Whether the end of a piece was skipped, so that the next piece does not start at ``position``.
        private var isCut = false

        /// Creates the counter for a body.
        ///
        /// - Parameters:
        ///   - offset: The offset of the first byte of the body.
        ///   - end: The exclusive end of the body, or `nil` if it is not known.
        ///   - firstStoredOffset: The offset of the first byte to store; see ``firstStoredOffset(offset:end:asked:)``.
        init(offset: Int64, end: Int64?, firstStoredOffset: Int64) {
            self.position = offset
            self.end = end
            self.firstStoredOffset = firstStoredOffset
        }

        /// Returns the offset of the first byte to store from a body that extends from `offset` to `end`.
        ///
        /// - Parameter asked: The start of the requested range: the start of a block, or the end of a block's stored
        ///   bytes. Bytes are stored from there or from the start of a block. The value is `nil` if the response starts
        ///   a different version, of which no byte is stored, or contains the whole body.
        static func firstStoredOffset(offset: Int64, end: Int64?, asked: Int64?) -> Int64 {
            guard let asked, offset <= asked, asked < end ?? .max else { return Block.roundUp(offset) }
            return asked
        }

        /// Evaluates a received piece of `count` bytes. No byte at or past `limit` is needed.
        ///
        /// Bytes past the limit are lost, so no more bytes are stored after that, even if the limit increases.
        mutating func chunk(count: Int, limit: Int64) -> ChunkAction {
            let start = position
            let bound = min(limit, end ?? Block.offsetLimit, Block.offsetLimit)
            guard start < bound, !isCut else { return .stop }
            let stop = start + min(Int64(count), bound - start)
            position = stop
            isCut = stop - start < Int64(count)
            let from = max(start, firstStoredOffset)
            guard from < stop else { return .skip }
            return .store(skip: Int(from - start), count: Int(stop - from), at: from)
        }

        /// Returns the action to take when the body ends.
        func bodyEnded() -> EndAction {
            // The bytes that were skipped at the end of the last piece were not counted.
            if isCut { return .complete }
            guard let end else { return .endOfResource(at: position) }
            return position >= end ? .complete : .interrupted(at: position)
        }
    }
}

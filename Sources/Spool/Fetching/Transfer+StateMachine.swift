import HTTPRanges

extension Transfer {
    /// Keeps count of where a response's bytes belong: asking → streaming → ended.
    ///
    /// Pure. What the origin's header fields claim has been evaluated before; this part holds the body to that claim.
    struct StateMachine: ~Copyable {
        /// What to do with a piece of the body.
        enum ChunkAction: Equatable {
            /// Of the piece, `count` bytes after the first `skip` land at `offset`.
            case land(skip: Int, count: Int, at: Int64)
            /// The whole piece lies before the first place where bytes may land.
            case skip
            /// The rest is not wanted, or is more than the origin announced.
            case stop
        }

        /// What the end of a body means.
        enum EndAction: Equatable {
            /// All that was announced has come, or all that was wanted.
            case complete
            /// The body of unknown length has ended: the resource ends here.
            case endOfResource(at: Int64)
            /// Less has come than was announced.
            case interrupted(at: Int64)
        }

        /// Offset of the next body byte.
        private(set) var position: Int64
        /// Exclusive end of the body as announced; nil: unknown.
        let end: Int64?
        /// Where the first byte lands.
        let firstLanding: Int64
        /// The end of a piece was left: the next one does not belong at ``position``.
        private var isCut = false

        /// - Parameters:
        ///   - offset: The offset of the first byte of the body.
        ///   - end: The exclusive end of the body, or `nil` if it is not known.
        ///   - firstLanding: The offset of the first byte to store; see ``firstLanding(offset:end:asked:)``.
        init(offset: Int64, end: Int64?, firstLanding: Int64) {
            self.position = offset
            self.end = end
            self.firstLanding = firstLanding
        }

        /// The offset of the first byte to store of a body from `offset` to `end`.
        ///
        /// - Parameter asked: The start of the requested range: the start of a block, or the end of a block's stored bytes.
        ///   Bytes are stored from there or from the start of a block. `nil` if the response starts another version, of
        ///   which no byte is stored, or has the whole body.
        static func firstLanding(offset: Int64, end: Int64?, asked: Int64?) -> Int64 {
            guard let asked, offset <= asked, asked < end ?? .max else { return Block.roundUp(offset) }
            return asked
        }

        /// A piece of `count` body bytes has come; no byte at or past `limit` is wanted.
        ///
        /// What lies past it is lost, so nothing more is taken after that, however far the limit moves.
        mutating func chunk(count: Int, limit: Int64) -> ChunkAction {
            let start = position
            let bound = min(limit, end ?? Block.offsetLimit, Block.offsetLimit)
            guard start < bound, !isCut else { return .stop }
            let stop = start + min(Int64(count), bound - start)
            position = stop
            isCut = stop - start < Int64(count)
            let from = max(start, firstLanding)
            guard from < stop else { return .skip }
            return .land(skip: Int(from - start), count: Int(stop - from), at: from)
        }

        /// The body has ended.
        func bodyEnded() -> EndAction {
            // How long what was left of the last piece is, nobody counted.
            if isCut { return .complete }
            guard let end else { return .endOfResource(at: position) }
            return position >= end ? .complete : .interrupted(at: position)
        }
    }
}

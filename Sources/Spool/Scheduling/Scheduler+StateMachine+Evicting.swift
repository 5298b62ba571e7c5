import ByteRanges
import SpoolStorage

// MARK: - Making room

extension Scheduler.StateMachine {
    /// Which stored bytes may go to make room: outside every reader's window, furthest behind first.
    ///
    /// The ranges, of whole blocks and about `count` bytes, are holes from now on, in which nothing starts or lands;
    /// call ``evicted(_:kept:)`` when the disk has let go of them.
    ///
    /// - Parameters:
    ///   - place: What may be chosen from; nil: all that has landed.
    ///   - positions: Where readers are that have gone on without telling.
    mutating func offerEvictable(
        _ count: Int64, within place: ByteRangeSet? = nil, positions: [ReaderID: Int64] = [:]
    ) -> [Range<Int64>] {
        var free = place.map { landed.intersection($0) } ?? landed
        var foremost: Int64 = 0
        for id in readers.keys.sorted() {
            if let position = positions[id] { passOn(id, to: position) }
            guard let reader = readers[id] else { continue }
            foremost = max(foremost, min(reader.position, Block.offsetLimit))
            free.remove(kept(for: reader))
        }
        for transfer in transfers.values where !transfer.isStale {
            free.remove(Block.roundDown(transfer.position)..<Block.end(at: transfer.position))
        }
        let chosen = choose(count, from: free, foremost: foremost)
        for range in chosen {
            landed.remove(range)
            evicting.insert(range)
        }
        return chosen
    }

    /// The disk has let go of what ``offerEvictable(_:within:positions:)`` returned, except for `kept`, which is in use
    /// after all.
    mutating func evicted(_ ranges: [Range<Int64>], kept: ByteRangeSet) -> [Action] {
        var actions: [Action] = []
        for range in ranges.map(\.addressable) where !range.isEmpty {
            evicting.remove(range)
            landed.remove(range)
            for stayed in kept.intersection(range) {
                landed.insert(stayed)
                wake(in: stayed, &actions)
            }
            discardHeadless(in: range, &actions)
            enqueue(wanting: range)
        }
        // Where all of it stayed there is no more room than before, and who tried again would only offer it again.
        if ranges.contains(where: { !kept.contains($0.addressable) }) { movements += 1 }
        return actions + plan()
    }

    /// The reader has gone on without telling: what lies behind it is not wanted again, once it has gone.
    private mutating func passOn(_ id: ReaderID, to position: Int64) {
        guard let reader = readers[id], !reader.isWaiting, position > reader.position else { return }
        readers[id]?.untoldBytes += position - reader.position
        readers[id]?.position = position
        renewDemand(of: id)
        enqueue(id)
    }

    /// What stays when room is made: the reader's block and the largest window, whatever its pace, since what has
    /// landed there would soon be asked for again.
    private func kept(for reader: ReaderState) -> Range<Int64> {
        let lower = Block.roundDown(reader.position)
        let ahead = min(reader.position.adding(min(policy.window, window)), Block.offsetLimit)
        let upper = min(Block.roundUp(ahead), Block.roundUp(min(reader.bound(length: length), Block.offsetLimit)))
        return Range(from: lower, to: max(upper, Block.end(at: reader.position)))
    }

    /// Behind the foremost reader from the front; then from the far end: the head is what a next play needs first.
    private func choose(_ count: Int64, from free: ByteRangeSet, foremost: Int64) -> [Range<Int64>] {
        var chosen: [Range<Int64>] = []
        var remaining = count
        // What has landed begins at block starts, and so does what is free of it.
        func take(_ range: Range<Int64>) {
            guard remaining > 0, !range.isEmpty else { return }
            let size = min(remaining, range.upperBound - range.lowerBound)
            let upper = min(range.upperBound, Block.roundUp(range.lowerBound + size))
            chosen.append(range.lowerBound..<upper)
            remaining -= upper - range.lowerBound
        }
        for range in free.intersection(0..<foremost) { take(range) }
        for range in free.intersection(foremost..<Block.offsetLimit).reversed() {
            guard remaining > 0 else { break }
            let lower = Block.roundDown(max(range.upperBound - remaining, 0))
            take(Range(from: max(range.lowerBound, lower), to: range.upperBound))
        }
        return chosen
    }
}

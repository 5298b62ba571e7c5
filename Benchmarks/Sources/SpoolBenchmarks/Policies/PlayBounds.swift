/// The bounds that no policy can exceed, computed with knowledge of the whole trace.
///
/// They are the result of Belady's algorithm on blocks, which admits a block only if that improves the result. Scans
/// are excluded, even though they read blocks that are played later. A policy may therefore exceed the bounds of a
/// trace with scans.
struct PlayBounds: Sendable {
    /// The fraction of the read bytes that were cached.
    var byteHit: Double
    /// The fraction of the playback sessions that could start immediately.
    var startHit: Double

    /// - Parameter capacity: The capacity, in blocks.
    init(_ trace: PlayTrace, capacity: Int) {
        var offsets: [Int32] = []
        var count: Int32 = 0
        for resource in trace.resources {
            offsets.append(count)
            count += resource.blockCount
        }
        var blocks: [Int32] = []
        var warmUp = 0
        for (number, event) in trace.events.enumerated() {
            if number == trace.warmUpCount { warmUp = blocks.count }
            guard !event.flags.contains(.scan) else { continue }
            for block in event.blocks { blocks.append(offsets[Int(event.resource)] + block) }
        }
        var kept = Self.kept(blocks, counting: nil, capacity: capacity, blockCount: Int(count))
        let read = blocks.count - warmUp
        byteHit = read == 0 ? 0 : Double(kept[warmUp...].count { $0 }) / Double(read)

        // The first events of a playback session read its start blocks.
        var starts: [Int32: [Int32]] = [:]
        for event in trace.events where event.flags.contains(.start) && !event.flags.contains(.scan) {
            starts[event.session] = trace.startBlocks(of: event)
        }
        var isStart: [Bool] = []
        var startSession: [Int32] = []
        var wanted = starts.mapValues { Set($0) }
        for event in trace.events where !event.flags.contains(.scan) {
            for block in event.blocks {
                let isWanted = wanted[event.session]?.remove(block) != nil
                isStart.append(isWanted)
                startSession.append(isWanted ? event.session : -1)
            }
        }
        kept = Self.kept(blocks, counting: isStart, capacity: capacity, blockCount: Int(count))
        var missing: Set<Int32> = []
        for index in isStart.indices where isStart[index] && !kept[index] { missing.insert(startSession[index]) }
        for (session, rest) in wanted where !rest.isEmpty { missing.insert(session) }
        let counted = trace.events[trace.warmUpCount...].filter {
            $0.flags.contains(.start) && !$0.flags.contains(.scan)
        }
        startHit =
            counted.isEmpty
            ? 0 : Double(counted.count { !missing.contains($0.session) }) / Double(counted.count)
    }

    /// Returns for each access whether it is a hit, if the number of hits marked in `isCounted` is maximized. `nil`
    /// counts all accesses.
    private static func kept(
        _ blocks: [Int32], counting isCounted: [Bool]?, capacity: Int, blockCount: Int
    ) -> [Bool] {
        // For each access, the next counted access to its block, computed from the end.
        var last = [Int32](repeating: -1, count: blockCount)
        var next = [Int32](repeating: -1, count: blocks.count)
        for index in blocks.indices.reversed() {
            let block = Int(blocks[index])
            next[index] = last[block]
            if (isCounted?[index] ?? true) { last[block] = Int32(index) }
        }
        var kept = [Bool](repeating: false, count: blocks.count)
        // Used entries are not removed, because their positions are in the past and they stay at the bottom.
        var heap = LatestUses()
        var used = 0
        for index in blocks.indices {
            if kept[index], (isCounted?[index] ?? true) { used -= 1 }
            let use = next[index]
            guard use >= 0, !kept[Int(use)] else { continue }
            if used >= capacity {
                guard let latest = heap.latest, latest > use else { continue }
                heap.removeLatest()
                kept[Int(latest)] = false
                used -= 1
            }
            kept[Int(use)] = true
            used += 1
            heap.insert(use)
        }
        return kept
    }
}

/// A heap of positions in a trace, with the latest at the top.
private struct LatestUses {
    private var uses: [Int32] = []

    var latest: Int32? { uses.first }

    mutating func insert(_ use: Int32) {
        uses.append(use)
        var place = uses.count - 1
        while place > 0, uses[(place - 1) / 2] < uses[place] {
            uses.swapAt(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
    }

    mutating func removeLatest() {
        uses.swapAt(0, uses.count - 1)
        uses.removeLast()
        var place = 0
        while true {
            var largest = place
            for child in [2 * place + 1, 2 * place + 2] as ContiguousArray where child < uses.count {
                if uses[child] > uses[largest] { largest = child }
            }
            guard largest != place else { return }
            uses.swapAt(place, largest)
            place = largest
        }
    }
}

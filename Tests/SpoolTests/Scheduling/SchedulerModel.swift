import ByteRanges

@testable import Spool
@testable import SpoolScheduling

/// A planner that examines all objects after each input, for comparison with the incremental planner.
///
/// It uses only facts from the machine: the stored bytes, the readers' positions and the transfers in progress. It does
/// not use the machine's indexes, queues and counts. After each input, it reports the actions that the machine should
/// have taken but did not take.
struct SchedulerModel {
    typealias Reader = ReaderState
    typealias Transfer = TransferState

    let storedRanges: ByteRangeSet
    let evicting: ByteRangeSet
    let length: Int64?
    let readers: [(id: ReaderID, state: Reader)]
    let transfers: [(id: TransferID, state: Transfer)]
    let places: [FailedRanges.Place]
    let isUnsupported: Bool
    let isClosing: Bool
    let needsValidation: Bool
    let preloadPermission: PreloadPermission
    let movements: Int
    let joinDistance: Int64
    let slots: Int

    init(_ bench: SchedulerBench) {
        storedRanges = bench.machine.storedRanges
        evicting = bench.machine.plan.stored.evicting
        length = bench.machine.length
        readers = bench.readers
        transfers = bench.transfers
        places = bench.machine.plan.failures.all
        isUnsupported = bench.machine.rangeSupport == .unsupported
        isClosing = bench.machine.plan.isClosing
        needsValidation = bench.machine.needsValidation
        preloadPermission = bench.machine.plan.preloadPermission
        movements = bench.machine.plan.movements
        let link = bench.machine.link
        let policy = bench.machine.plan.policy
        slots = policy.maximumConcurrentRequests
        joinDistance = max(
            256 * kib, link.bytes(inRoundTrips: 2) ?? 0,
            link.bytes(in: policy.drainTimeout) ?? policy.initialRequestSize)
    }

    // MARK: - Invariants

    /// Returns the first violated invariant, or `nil` if there is none.
    func problem(_ bench: SchedulerBench) -> String? {
        overlap() ?? counts(bench) ?? review() ?? timers(bench) ?? inVain(bench)
    }

    /// Checks that no two transfers fetch the same byte, and no transfer includes bytes that are stored or being
    /// evicted.
    private func overlap() -> String? {
        var reaches: [(id: TransferID, range: Range<Int64>)] = []
        for (id, state) in transfers where !state.isStale {
            let reach = state.position..<limit(id, state)
            // A body from an origin without ranges also contains stored bytes, but two such bodies never overlap.
            if !state.isSequential, !reach.isEmpty {
                guard storedRanges.intersection(reach).isEmpty else { return "\(id.number) includes stored bytes" }
                guard evicting.intersection(reach).isEmpty else { return "\(id.number) includes bytes under eviction" }
            }
            for (other, range) in reaches where range.overlaps(reach) && !reach.isEmpty && !range.isEmpty {
                let isMixed = transfers.first { $0.id == other }?.state.isSequential != state.isSequential
                if !isMixed { return "\(id.number) and \(other.number) both fetch \(reach.clamped(to: range))" }
            }
            reaches.append((id, reach))
        }
        let live = transfers.count { $0.state.isLive }
        return live > slots ? "\(live) concurrent transfers" : nil
    }

    /// Checks that the counts of the machine equal the numbers of objects.
    private func counts(_ bench: SchedulerBench) -> String? {
        let expectant = readers.count { _, reader in
            if case .waiting = reader.status { reader.priority == .playback } else { false }
        }
        if bench.machine.plan.readers.expectantPlayers != expectant {
            return "\(expectant) players wait, which differs from the count"
        }
        for (id, reader) in readers {
            let demand = reader.mayUseStored ? bench.machine.plan.readAhead.demand(of: reader) : nil
            if demand?.lower != reader.demand?.lower { return "the demand of \(id.number) is out of date" }
            guard reader.isWaiting, reader.mayUseStored else { continue }
            if storedRanges.contains(reader.position) { return "\(id.number) waits for stored bytes" }
        }
        return nil
    }

    /// Checks that each transfer is in the state that its readers require, and that no transfer is paused without a
    /// reason.
    private func review() -> String? {
        guard !isClosing else { return nil }
        for (id, state) in transfers where state.isLive {
            // A transfer that has reached its limit is about to end.
            if limit(id, state) <= state.position { continue }
            let isWanted = isWanted(id, state)
            switch state.interest {
            case .wanted: if !isWanted { return "\(id.number) counts as needed" }
            case .drains, .unwanted: if isWanted { return "\(id.number) counts as unneeded" }
            case nil: break
            }
            if state.isHeld, mayProceed(state, isWanted: isWanted) { return "\(id.number) is paused without a reason" }
        }
        return nil
    }

    /// Checks that a timer is running for each object that waits for one.
    private func timers(_ bench: SchedulerBench) -> String? {
        for (id, state) in transfers {
            if case .unwanted(let timer) = state.interest, !bench.delays.contains(timer) {
                return "\(id.number) waits for a timer that does not run"
            }
        }
        for place in places {
            guard case .waiting(let timer) = place.state else { continue }
            if !bench.retries.contains(where: { $0.id == timer }) { return "\(place.range) waits for no timer" }
        }
        return nil
    }

    /// Checks that each waiting reader has a transfer in progress, or waits for its turn or for a timer. If read-ahead
    /// is allowed, the reader must have a transfer.
    private func inVain(_ bench: SchedulerBench) -> String? {
        guard !isClosing else { return nil }
        let isFull = transfers.count { $0.state.isLive } >= slots
        let mustYield = mustYield(isPlayerWaiting: bench.machine.isPlaybackWaiting)
        for (id, reader) in readers {
            guard reader.mayUseStored else {
                let isAsked = transfers.contains { $0.state.isValidation && !$0.state.isStale }
                let isBlocked = places.contains { $0.state != .trying && $0.isValidation }
                let isSeenTo = isAsked || isBlocked || reader.queued != nil
                if reader.isWaiting, !isSeenTo { return "no request is sent for \(id.number)" }
                continue
            }
            guard let demand = reader.demand,
                let hole = storedRanges.firstMissingRange(in: demand.lower..<demand.storedEnd),
                !evicting.contains(hole.lowerBound)
            else { continue }
            if isBlocked(hole.lowerBound, id, reader) {
                if case .waiting = reader.status { return "\(id.number) counts as served" }
                continue
            }
            if case .stalled = reader.status, reader.queued == nil { return "\(id.number) counts as stopped" }
            let carriers = transfers.filter { transfer in
                !transfer.state.isStale && transfer.state.position <= hole.lowerBound
                    && hole.lowerBound < limit(transfer.id, transfer.state)
            }
            if carriers.contains(where: { !$0.state.isLive }) { continue }
            // A transfer that has reached its limit ends, and then its successors are planned.
            let isEnding = transfers.contains { id, state in
                !state.isStale && limit(id, state) <= state.position && state.position >= demand.lower
                    && state.position <= hole.lowerBound
            }
            if isEnding, carriers.isEmpty { continue }
            if let carrier = carriers.max(by: { $0.state.position < $1.state.position }) {
                let distance = hole.lowerBound - carrier.state.position
                if reader.isWaiting, !isUnsupported, distance > joinDistance, reader.queued == nil {
                    return "\(id.number) waits for a distant range"
                }
                continue
            }
            if isUnsupported {
                if !reader.isWaiting, transfers.contains(where: \.state.isLive) { continue }
            }
            if hole.lowerBound >= demand.requestedEnd, !isUnsupported || !demand.isWindowed { continue }
            if reader.queued == nil { return "\(id.number) has no transfer in progress at \(hole.lowerBound)" }
            if !isFull, !(mustYield && reader.priority == .preload) {
                return "\(id.number) waits although a transfer is free"
            }
        }
        return nil
    }

    // MARK: - The same queries, by examining all objects

    private func isBlocked(_ offset: Int64, _ id: ReaderID, _ reader: Reader) -> Bool {
        places.contains { place in
            guard place.state != .trying, !place.isValidation else { return false }
            if place.notBefore != nil, isUnsupported { return true }
            guard place.range.contains(offset) else { return false }
            if place.notBefore != nil { return true }
            if let only = place.reader { return only == id }
            return reader.priority <= place.priority
        }
    }

    private func isWanted(_ id: TransferID, _ transfer: Transfer) -> Bool {
        if transfer.isValidation { return true }
        let limit = limit(id, transfer)
        return readers.contains { _, reader in
            guard let demand = reader.demand, demand.lower < limit else { return false }
            if transfer.position < demand.storedEnd { return true }
            guard demand.isWindowed else { return false }
            return transfer.isSequential || transfer.isOpenEnded || transfer.position < demand.retainedEnd
        }
    }

    private func mustYield(isPlayerWaiting: Bool) -> Bool {
        preloadPermission == .held || preloadPermission == .free && isPlayerWaiting
    }

    private func mayProceed(_ transfer: Transfer, isWanted: Bool) -> Bool {
        if case .lacksSpace(let count) = transfer.flow, count == movements { return false }
        if transfer.isValidation || transfer.interest == .drains { return true }
        guard isWanted else { return false }
        let isPlayerWaiting = readers.contains { _, reader in
            if case .waiting = reader.status { reader.priority == .playback } else { false }
        }
        return readers.contains { _, reader in
            guard let demand = reader.demand, demand.lower < transfer.end ?? .max else { return false }
            if reader.priority == .preload, mustYield(isPlayerWaiting: isPlayerWaiting) { return false }
            return transfer.position < demand.storedEnd
        }
    }

    private func limit(_ id: TransferID, _ transfer: Transfer) -> Int64 {
        let position = transfer.position
        var limit = min(transfer.end ?? .max, length ?? .max, Block.offsetLimit)
        if !transfer.isSequential {
            for range in storedRanges where range.upperBound > position {
                limit = min(limit, max(range.lowerBound, position))
            }
            for range in evicting where range.upperBound > position {
                limit = min(limit, max(range.lowerBound, position))
            }
        }
        for (other, state) in transfers
        where other != id && !state.isStale && state.isSequential == transfer.isSequential {
            if state.position > position { limit = min(limit, Block.roundDown(state.position)) }
            if state.position == position {
                let isFirst = transfer.hasStored == state.hasStored ? id < other : state.hasStored
                if !isFirst { limit = position }
            }
        }
        return max(limit, position)
    }
}

import ByteRanges

@testable import Spool
@testable import SpoolScheduling

/// A planner that looks at everything each time, to hold the incremental one against.
///
/// It takes the facts (what has landed, who reads where, what is under way) from the machine, and nothing that the
/// machine keeps in order to be fast: no index, no queue, no count. After each input it says what the machine should
/// have seen to and has not.
struct SchedulerModel {
    typealias Reader = ReaderState
    typealias Transfer = TransferState

    let landed: ByteRangeSet
    let evicting: ByteRangeSet
    let length: Int64?
    let readers: [(id: ReaderID, state: Reader)]
    let transfers: [(id: TransferID, state: Transfer)]
    let places: [FailedPlaces.Place]
    let isUnsupported: Bool
    let isClosing: Bool
    let needsValidation: Bool
    let isYielding: Bool
    let movements: Int
    let joinDistance: Int64
    let slots: Int

    init(_ bench: SchedulerBench) {
        landed = bench.machine.landed
        evicting = bench.machine.plan.stored.evicting
        length = bench.machine.length
        readers = bench.readers
        transfers = bench.transfers
        places = bench.machine.plan.failures.all
        isUnsupported = bench.machine.rangeSupport == .unsupported
        isClosing = bench.machine.plan.isClosing
        needsValidation = bench.machine.needsValidation
        isYielding = bench.machine.plan.isYielding
        movements = bench.machine.plan.movements
        let link = bench.machine.link
        let policy = bench.machine.plan.policy
        slots = policy.transfersPerResource
        joinDistance = max(
            256 * kib, link.bytes(inRoundTrips: 2) ?? 0, link.bytes(in: policy.drainTime) ?? policy.firstRequest)
    }

    // MARK: - What must hold

    /// What is wrong; nil: nothing.
    func problem(_ bench: SchedulerBench) -> String? {
        overlap() ?? counts(bench) ?? review() ?? timers(bench) ?? inVain(bench)
    }

    /// No two transfers bring the same byte, and none reaches into what is there or on its way out.
    private func overlap() -> String? {
        var reaches: [(id: TransferID, range: Range<Int64>)] = []
        for (id, state) in transfers where !state.isStale {
            let reach = state.position..<limit(id, state)
            // A body that comes in one sequence runs through what has landed; two of them meet nowhere all the same.
            if !state.isSequential, !reach.isEmpty {
                guard landed.intersection(reach).isEmpty else { return "\(id.number) reaches into landed bytes" }
                guard evicting.intersection(reach).isEmpty else { return "\(id.number) reaches into leaving bytes" }
            }
            for (other, range) in reaches where range.overlaps(reach) && !reach.isEmpty && !range.isEmpty {
                let isMixed = transfers.first { $0.id == other }?.state.isSequential != state.isSequential
                if !isMixed { return "\(id.number) and \(other.number) both bring \(reach.clamped(to: range))" }
            }
            reaches.append((id, reach))
        }
        let live = transfers.count { $0.state.isLive }
        return live > slots ? "\(live) transfers at once" : nil
    }

    /// What the machine keeps count of is what there is.
    private func counts(_ bench: SchedulerBench) -> String? {
        let expectant = readers.count { _, reader in
            if case .waiting = reader.standing { reader.priority == .playback } else { false }
        }
        if bench.machine.plan.readers.expectantPlayers != expectant {
            return "\(expectant) players wait, not as counted"
        }
        for (id, reader) in readers {
            let demand = reader.mayUseStored ? bench.machine.plan.readAhead.demand(of: reader) : nil
            if demand?.lower != reader.demand?.lower { return "the demand of \(id.number) is out of date" }
            guard reader.isWaiting, reader.mayUseStored else { continue }
            if landed.contains(reader.position) { return "\(id.number) waits for landed bytes" }
        }
        return nil
    }

    /// Each transfer is wanted, let in or doomed as its readers would have it, and none is held for nothing.
    private func review() -> String? {
        guard !isClosing else { return nil }
        for (id, state) in transfers where state.isLive {
            // One that has come to where it stops is about to end.
            if limit(id, state) <= state.position { continue }
            let isWanted = isWanted(id, state)
            switch state.interest {
            case .wanted: if !isWanted { return "\(id.number) is thought to be wanted" }
            case .drains, .unwanted: if isWanted { return "\(id.number) is thought to be unwanted" }
            case nil: break
            }
            if state.isHeld, mayProceed(state, isWanted: isWanted) { return "\(id.number) is held for nothing" }
        }
        return nil
    }

    /// Whatever waits for a timer has one that runs.
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

    /// Whoever waits has something under way, or waits for its turn or for a timer; and who may read ahead does.
    private func inVain(_ bench: SchedulerBench) -> String? {
        guard !isClosing else { return nil }
        let isFull = transfers.count { $0.state.isLive } >= slots
        let mustYield = isYielding || bench.machine.isPlaybackWaiting
        for (id, reader) in readers {
            guard reader.mayUseStored else {
                let isAsked = transfers.contains { $0.state.isValidation && !$0.state.isStale }
                let isBlocked = places.contains { $0.state != .trying && $0.isValidation }
                let isSeenTo = isAsked || isBlocked || reader.queued != nil
                if reader.isWaiting, !isSeenTo { return "nobody asks for \(id.number)" }
                continue
            }
            guard let demand = reader.demand, let hole = landed.firstHole(in: demand.lower..<demand.takes),
                !evicting.contains(hole.lowerBound)
            else { continue }
            if isBlocked(hole.lowerBound, id, reader) {
                if case .waiting = reader.standing { return "\(id.number) is thought to be served" }
                continue
            }
            if case .stalled = reader.standing, reader.queued == nil { return "\(id.number) is thought to be stopped" }
            let carriers = transfers.filter { transfer in
                !transfer.state.isStale && transfer.state.position <= hole.lowerBound
                    && hole.lowerBound < limit(transfer.id, transfer.state)
            }
            if carriers.contains(where: { !$0.state.isLive }) { continue }
            // One that has come to where it stops ends, and then its heirs are seen to.
            let isEnding = transfers.contains { id, state in
                !state.isStale && limit(id, state) <= state.position && state.position >= demand.lower
                    && state.position <= hole.lowerBound
            }
            if isEnding, carriers.isEmpty { continue }
            if let carrier = carriers.max(by: { $0.state.position < $1.state.position }) {
                let distance = hole.lowerBound - carrier.state.position
                if reader.isWaiting, !isUnsupported, distance > joinDistance, reader.queued == nil {
                    return "\(id.number) waits for what is far away"
                }
                continue
            }
            if isUnsupported {
                if !reader.isWaiting, transfers.contains(where: \.state.isLive) { continue }
            }
            if hole.lowerBound >= demand.asks, !isUnsupported || !demand.isWindowed { continue }
            if reader.queued == nil { return "\(id.number) has nothing under way at \(hole.lowerBound)" }
            if !isFull, !(mustYield && reader.priority == .preload) {
                return "\(id.number) is kept waiting although there is a place"
            }
        }
        return nil
    }

    // MARK: - The same questions, answered by looking at everybody

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
            if transfer.position < demand.takes { return true }
            guard demand.isWindowed else { return false }
            return transfer.isSequential || transfer.position < demand.keeps
        }
    }

    private func mayProceed(_ transfer: Transfer, isWanted: Bool) -> Bool {
        if case .lacksSpace(let count) = transfer.flow, count == movements { return false }
        if transfer.isValidation || transfer.interest == .drains { return true }
        guard isWanted else { return false }
        let isPlayerWaiting = readers.contains { _, reader in
            if case .waiting = reader.standing { reader.priority == .playback } else { false }
        }
        return readers.contains { _, reader in
            guard let demand = reader.demand, demand.lower < transfer.end ?? .max else { return false }
            if reader.priority == .preload, isYielding || isPlayerWaiting { return false }
            return transfer.position < demand.takes
        }
    }

    private func limit(_ id: TransferID, _ transfer: Transfer) -> Int64 {
        let position = transfer.position
        var limit = min(transfer.end ?? .max, length ?? .max, Block.offsetLimit)
        if !transfer.isSequential {
            for range in landed where range.upperBound > position {
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
                let isFirst = transfer.hasLanded == state.hasLanded ? id < other : state.hasLanded
                if !isFirst { limit = position }
            }
        }
        return max(limit, position)
    }
}

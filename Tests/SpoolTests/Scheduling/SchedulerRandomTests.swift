import ByteRanges
import Testing

@testable import Spool

/// Arbitrary inputs in arbitrary order, as a shell may give them, against what must hold after each.
@Suite(.timeLimit(.minutes(1)))
struct SchedulerRandomTests {
    @Test("Whatever happens, no byte has two carriers and nobody waits in vain", arguments: 0..<60 as Range<UInt64>)
    func randomInputs(_ seed: UInt64) {
        var play = RandomPlay(seed: seed)
        for step in 0..<400 {
            play.step()
            if let problem = play.problem() {
                Issue.record("seed \(seed), step \(step), after \(play.history.suffix(12)): \(problem)")
                return
            }
        }
    }
}

/// A shell that does anything that a shell may do.
private struct RandomPlay {
    let bench: SchedulerBench
    private var random: SeededGenerator
    var history: [String] = []
    private var waiting: Set<ReaderID> = []
    private var streaming: Set<TransferID> = []
    private var held: Set<TransferID> = []
    private var released: [[Range<Int64>]] = []
    private let size: Int64 = 24 * mib
    private let slots: Int

    init(seed: UInt64) {
        var random = SeededGenerator(seed)
        var policy = ReadAheadPolicy()
        policy.transfersPerResource = random.int(1...6)
        slots = policy.transfersPerResource
        bench = SchedulerBench(
            length: random.chance(2) ? 24 * mib : nil, window: Int64(random.int(1...16)) * mib, retries: 2,
            policy: policy)
        self.random = random
    }

    mutating func step() {
        switch random.int(0...99) {
        case 0..<12: openReader()
        case 12..<30: look()
        case 30..<38: closeReader()
        case 38..<75: transfer()
        case 75..<79: bench.endGraces()
        case 79..<84: bench.retryNow()
        case 84..<88: release()
        case 88..<92: drop()
        case 92..<94: lose()
        case 94..<95: changeGeneration()
        case 95..<96: bench.perform(bench.machine.lengthLearnt(size))
        case 96..<97: closeOrReopen()
        case 97..<98: rate()
        default: bench.reap()
        }
    }

    // MARK: - Inputs

    private mutating func openReader() {
        guard bench.machine.readers.count < 12 else { return }
        let start = Int64(random.int(0...Int(size + mib)))
        let end = random.chance(2) ? nil : start + Int64(random.int(1...Int(4 * mib)))
        let (id, actions) = bench.machine.openReader(
            at: start, end: end, priority: random.chance(4) ? .preload : .playback)
        bench.perform(actions)
        history.append("open \(id.number) at \(start) to \(end ?? -1)")
    }

    private mutating func look() {
        guard let id = random.pick(bench.machine.readers.keys.sorted()) else { return }
        let look = bench.look(id)
        history.append("look \(id.number): \(look)")
        waiting.remove(id)
        switch look {
        case .landed(let range): bench.advance(id, to: range.upperBound)
        case .wait: waiting.insert(id)
        case .end, .unsatisfiable, .failed, .closed: bench.close(id)
        }
    }

    private mutating func closeReader() {
        guard let id = random.pick(bench.machine.readers.keys.sorted()) else { return }
        history.append("close \(id.number)")
        waiting.remove(id)
        bench.close(id)
    }

    private mutating func transfer() {
        held.subtract(bench.resumed)
        let ids = bench.asked.keys.filter { !held.contains($0) || bench.machine.isCut($0) }.sorted()
        guard let id = random.pick(ids), let asked = bench.asked[id] else { return }
        history.append("transfer \(id.number) at \(bench.machine.position(of: id) ?? -1)")
        if !streaming.contains(id) {
            switch random.int(0...19) {
            case 0: forget(id) { $0.fail(id) }
            case 1: forget(id) { $0.restart(id) }
            case 2: forget(id) { $0.refuse(id) }
            case 3 where asked.lower > 0 || asked.upper != nil:
                streaming.insert(id)
                bench.machine.rangeSupport = .unsupported
                bench.streamWhole(id, isSequential: true)
            default:
                streaming.insert(id)
                if asked.upper == nil, asked.lower == 0 {
                    bench.streamWhole(id, isSequential: bench.machine.rangeSupport == .unsupported)
                } else {
                    bench.stream(id)
                }
            }
            return
        }
        switch random.int(0...29) {
        case 0: forget(id) { $0.fail(id) }
        case 1: forget(id) { $0.end(id) }
        case 2: if case .hold = bench.lackSpace(id) { held.insert(id) }
        default:
            for _ in 0..<random.int(1...6) {
                if let position = bench.machine.position(of: id), position >= size {
                    forget(id) { $0.end(id) }
                    bench.perform(bench.machine.lengthLearnt(size))
                    return
                }
                switch bench.land(id, Int64(random.int(1...300_000))) {
                case .go: continue
                case .hold: held.insert(id)
                case .stop: forget(id) { _ in }
                }
                return
            }
        }
    }

    private mutating func forget(_ id: TransferID, _ body: (SchedulerBench) -> Void) {
        streaming.remove(id)
        held.remove(id)
        body(bench)
    }

    private mutating func release() {
        let ranges = bench.machine.release(Int64(random.int(1...Int(4 * mib))))
        history.append("release \(ranges)")
        if !ranges.isEmpty { released.append(ranges) }
    }

    private mutating func drop() {
        guard !released.isEmpty else { return }
        let ranges = released.removeFirst()
        var kept = ByteRangeSet()
        if random.chance(3), let range = ranges.first { kept.insert(range) }
        history.append("drop \(ranges)")
        bench.perform(bench.machine.dropped(ranges, kept: kept))
    }

    private mutating func lose() {
        guard let bounds = bench.machine.landed.bounds else { return }
        let block = Block.roundDown(Int64(random.int(0...Int(bounds.upperBound - 1))))
        history.append("lose block at \(block)")
        bench.perform(bench.machine.lost(block..<block + Block.size))
    }

    private mutating func changeGeneration() {
        history.append("generation")
        // The one that brings it has just got its head.
        let kept = bench.liveIDs.first { !streaming.contains($0) }
        let (left, actions) = bench.machine.generationChanged(length: size, keeping: kept)
        for id in left { waiting.remove(id) }
        released = []
        bench.perform(actions)
    }

    private mutating func closeOrReopen() {
        history.append("close, reopen \(bench.machine.isClosing)")
        if bench.machine.isClosing { bench.machine.reopen() } else { bench.perform(bench.machine.close()) }
        // Readers that were told to close do so; those that come later find it open.
        for id in bench.machine.readers.keys.sorted() where bench.machine.isClosing {
            waiting.remove(id)
            bench.close(id)
        }
        if bench.machine.isClosing { bench.machine.reopen() }
    }

    private mutating func rate() {
        bench.machine.link.note(bytes: Int64(random.int(1...50_000_000)), seconds: 1)
        bench.machine.link.note(roundTrip: Double(random.int(1...200)) / 1000)
    }

    // MARK: - What must hold

    mutating func problem() -> String? {
        held.subtract(bench.resumed)
        return (overlap() ?? inVain()).map { "\($0); \(state)" }
    }

    /// Readers and live transfers, for whoever has to find out.
    private var state: String {
        let readers = bench.machine.readers.sorted { $0.key < $1.key }.map { id, reader in
            "\(id.number)\(reader.ticket == nil ? "" : "?") \(reader.priority) at \(reader.position)"
        }
        let transfers = bench.machine.transfers.sorted { $0.key < $1.key }.map { id, state in
            let marks =
                (state.isSequential ? "s" : "") + (state.isHeld ? "h" : "") + (state.lacksSpace ? "l" : "")
                + (state.isStale ? "v" : state.isCut ? "c" : "")
            return "\(id.number)\(marks) \(state.position)..<\(state.end ?? -1)"
        }
        return "readers \(readers), transfers \(transfers), slots \(slots), window \(bench.machine.window), "
            + "ranges \(bench.machine.rangeSupport), landed \(bench.machine.landed)"
    }

    /// No two live transfers bring the same byte, and none reaches into landed bytes.
    private func overlap() -> String? {
        var reaches: [(TransferID, Range<Int64>)] = []
        for (id, state) in bench.machine.transfers where !state.isStale && !state.isSequential {
            let reach = state.position..<bench.machine.limit(of: id, state)
            if !bench.machine.landed.intersection(reach).isEmpty {
                return "\(id.number) reaches into landed bytes: \(reach)"
            }
            reaches.append((id, reach))
        }
        for (id, reach) in reaches {
            for (other, otherReach) in reaches where other < id && reach.overlaps(otherReach) {
                return "\(id.number) and \(other.number) both bring \(reach.clamped(to: otherReach))"
            }
        }
        let live = bench.machine.transfers.values.count { !$0.isCut }
        if live > slots { return "\(live) transfers at once" }
        return nil
    }

    /// Every waiting reader has been woken, or has something that will wake it.
    private func inVain() -> String? {
        for id in waiting.sorted() where !bench.woken.contains(id) {
            guard let reader = bench.machine.readers[id] else { return "\(id.number) is forgotten" }
            let hole = bench.machine.landed.firstHole(in: Block.roundDown(reader.position)..<reader.position + 1)
            let offset = hole?.lowerBound ?? reader.position
            let live = bench.machine.transfers.filter { !$0.value.isStale }
            let isCarried = live.contains { $0.value.position <= offset && offset < $0.value.end ?? .max }
            let asks = bench.actions.count
            let look = bench.look(id)
            guard look == .wait else { return "\(id.number) was not woken to find \(look)" }
            if !bench.retries.isEmpty || !released.isEmpty { continue }
            if bench.actions[asks...].contains(where: \.isStart), !isCarried {
                return "\(id.number) at \(offset) had nothing under way until it looked again"
            }
            let stuck = held.subtracting(bench.resumed).filter { !bench.isCut($0) }
            // A preload yields to a player that waits, until that has looked.
            let hasYielded = bench.machine.readers.contains { other, state in
                reader.priority == .preload && state.priority == .playback && bench.woken.contains(other)
            }
            if live.keys.allSatisfy({ stuck.contains($0) }), !hasYielded {
                return "\(id.number) waits for transfers that are all held"
            }
            if !isCarried, live.values.count(where: { !$0.isCut }) < slots {
                return "\(id.number) at \(offset) has no carrier, although one is free"
            }
        }
        return nil
    }
}

extension Scheduler.StateMachine.Action {
    fileprivate var isStart: Bool { if case .start = self { true } else { false } }
}

extension SeededGenerator {
    fileprivate mutating func int(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &self) }

    /// True once in `count` times.
    fileprivate mutating func chance(_ count: Int) -> Bool { int(1...count) == 1 }

    fileprivate mutating func pick<T>(_ items: [T]) -> T? { items.randomElement(using: &self) }
}

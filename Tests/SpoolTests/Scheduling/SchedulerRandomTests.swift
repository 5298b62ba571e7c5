import ByteRanges
import SpoolTesting
import Testing

@testable import Spool
@testable import SpoolScheduling

/// Random sequences of the inputs that a scheduler may pass, and the invariants that must hold after each input.
@Suite(.timeLimit(.minutes(10)))
struct SchedulerRandomTests {
    @Test(
        "For any inputs, the incremental plan equals the full plan, no byte is fetched twice, and no reader is stuck",
        arguments: 0..<60 as Range<UInt64>)
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

    @Test("Once no more faults occur, every reader reaches the end of its range", arguments: 0..<40 as Range<UInt64>)
    func allEnds(_ seed: UInt64) {
        var play = RandomPlay(seed: seed)
        for _ in 0..<200 { play.step() }
        if let problem = play.goWell() { Issue.record("seed \(seed): \(problem)") }
    }
}

/// A simulated scheduler that passes any possible inputs.
private struct RandomPlay {
    let bench: SchedulerBench
    private var random: SplitMix
    var history: [String] = []
    private var waiting: Set<ReaderID> = []
    private var streaming: Set<TransferID> = []
    private var held: Set<TransferID> = []
    private var offered: [[Range<Int64>]] = []
    private let size: Int64 = 24 * mib
    private var complaint: String?

    init(seed: UInt64) {
        var random = SplitMix(seed)
        var policy = ReadAheadPolicy()
        policy.maximumConcurrentRequests = random.int(1...6)
        bench = SchedulerBench(
            length: random.chance(2) ? size : nil, window: Int64(random.int(1...16)) * mib, retries: 2,
            policy: policy, needsValidation: random.chance(6))
        if random.chance(2) {
            bench.machine.link.note(bytes: Int64(random.int(100_000...50_000_000)), seconds: 1)
            bench.machine.link.note(roundTrip: Double(random.int(1...200)) / 1000)
        }
        self.random = random
    }

    mutating func step() {
        bench.now += .milliseconds(random.int(0...300))
        switch random.int(0...99) {
        case 0..<12: openReader()
        case 12..<30: read()
        case 30..<36: closeReader()
        case 36..<73: transfer()
        case 73..<77: bench.endDelays()
        case 77..<82: bench.retryNow()
        case 82..<86: offer()
        case 86..<90: evict()
        case 90..<92: invalidate()
        case 92..<93: changeGeneration()
        case 93..<94: learnLength()
        case 94..<95: closeOrReopen()
        case 95..<96: yield()
        case 96..<98: validate()
        case 98..<99:
            if random.chance(8) { bench.perform(bench.machine.limitWindow(to: 1 << random.int(10...24))) }
            let window = random.chance(2) ? nil : Int64(1) << random.int(10...24)
            bench.perform(bench.machine.setMemoryWindow(window))
        default: bench.reap()
        }
    }

    // MARK: - Readers

    private mutating func openReader() {
        guard bench.machine.plan.readers.ids.count < 12 else { return }
        let start = Int64(random.int(0...Int(size + mib)))
        let end = random.chance(2) ? nil : start + Int64(random.int(1...Int(4 * mib)))
        let (id, actions) = bench.machine.openReader(
            at: start, end: end, priority: random.chance(4) ? .preload : .playback, now: bench.now)
        bench.perform(actions)
        history.append("open \(id.number) at \(start) to \(end ?? -1)")
    }

    private mutating func read() {
        guard let id = random.pick(bench.machine.plan.readers.ids) else { return }
        let decision = bench.read(id, limit: Int64(random.int(1...Int(mib))))
        history.append("read \(id.number): \(decision)")
        waiting.remove(id)
        switch decision {
        case .stored(let range, let free):
            if !bench.storedRanges.contains(range) || !bench.storedRanges.contains(range.lowerBound..<free) {
                complaint = "\(id.number) gets bytes that are not stored"
            }
            bench.advance(id, to: random.chance(3) ? free : range.upperBound)
        case .wait: waiting.insert(id)
        case .failed(let failure):
            if !bench.remembered.contains(failure) { complaint = "\(id.number) receives a discarded failure" }
            bench.close(id)
        case .end, .unsatisfiable, .closed: bench.close(id)
        }
    }

    private mutating func closeReader() {
        guard let id = random.pick(bench.machine.plan.readers.ids) else { return }
        history.append("close \(id.number)")
        waiting.remove(id)
        bench.close(id)
    }

    // MARK: - Transfers

    private mutating func transfer() {
        held.subtract(bench.resumed)
        let ids = bench.asked.keys.filter { !held.contains($0) || bench.machine.isCancelled($0) }.sorted()
        guard let id = random.pick(ids) else { return }
        history.append("transfer \(id.number) at \(bench.machine.position(of: id) ?? -1)")
        if streaming.contains(id) { body(id) } else { head(id) }
    }

    private mutating func head(_ id: TransferID) {
        guard let id = connect(id), let asked = bench.asked[id] else { return }
        let isValidation = bench.isValidation(id)
        switch random.int(0...19) {
        case 0: forget(id) { $0.interrupt(id, retryAfter: .milliseconds(900)) }
        case 1: forget(id) { $0.restart(id) }
        case 2: forget(id) { $0.refuse(id, isCredentialFailure: id.number % 2 == 0) }
        case 3: forget(id) { $0.interrupt(id) }
        case 4 where !isValidation && (asked.lower > 0 || asked.upper != nil):
            streaming.insert(id)
            bench.perform(bench.machine.recordMissingRangeSupport())
            bench.streamWhole(id, isSequential: true)
        case 5 where asked.upper.map { $0 > asked.lower + 70_000 } ?? false:
            streaming.insert(id)
            bench.stream(id, end: asked.lower + Int64(random.int(1...70_000)))
        default:
            if isValidation, bench.machine.needsValidation {
                bench.perform(bench.machine.validated())
                forget(id) { $0.restart(id) }
                return
            }
            streaming.insert(id)
            if asked.upper == nil, asked.lower == 0 {
                bench.streamWhole(id, isSequential: bench.machine.rangeSupport == .unsupported)
            } else {
                bench.stream(id)
            }
        }
    }

    /// Connects a transfer, which then sends its request or is cancelled. If it is cancelled, its successors are
    /// connected until one of them sends its request.
    private mutating func connect(_ id: TransferID) -> TransferID? {
        var next: TransferID? = id
        for _ in 0..<20 {
            guard let id = next, !bench.maySendRequest(id) else { return next }
            let previous = Set(bench.asked.keys)
            forget(id) { $0.end(id) }
            next = bench.asked.keys.filter { !previous.contains($0) }.min()
        }
        complaint = "requests are cancelled and sent again forever"
        return nil
    }

    private mutating func body(_ id: TransferID) {
        switch random.int(0...29) {
        case 0: forget(id) { $0.interrupt(id) }
        case 1: forget(id) { $0.end(id) }
        case 2: if case .hold = bench.lackSpace(id) { held.insert(id) }
        default: store(id, chunks: random.int(1...6))
        }
    }

    private mutating func store(_ id: TransferID, chunks: Int) {
        for _ in 0..<chunks {
            if let position = bench.machine.position(of: id), position >= size {
                bench.perform(bench.machine.recordLength(size).actions)
                forget(id) { $0.end(id) }
                return
            }
            switch bench.store(id, Int64(random.int(1...300_000))) {
            case .proceed: continue
            case .hold: held.insert(id)
            case .stop: forget(id) { _ in }
            }
            return
        }
    }

    private mutating func forget(_ id: TransferID, _ body: (SchedulerBench) -> Void) {
        streaming.remove(id)
        held.remove(id)
        body(bench)
    }

    // MARK: - Stored bytes

    private mutating func offer() {
        let ranges = bench.machine.offerEvictable(Int64(random.int(1...Int(4 * mib))))
        history.append("offer \(ranges)")
        if !ranges.isEmpty { offered.append(ranges) }
    }

    private mutating func evict() {
        guard !offered.isEmpty else { return }
        let ranges = offered.removeFirst()
        var kept = ByteRangeSet()
        if random.chance(3), let range = ranges.first { kept.insert(range) }
        history.append("evicted \(ranges)")
        bench.perform(bench.machine.evicted(ranges, kept: kept))
    }

    private mutating func invalidate() {
        guard let bounds = bench.machine.storedRanges.bounds else { return }
        let block = Block.roundDown(Int64(random.int(0...Int(bounds.upperBound - 1))))
        history.append("invalidate block at \(block)")
        bench.perform(bench.machine.invalidated(block..<block + Block.size))
    }

    private mutating func changeGeneration() {
        history.append("generation")
        // The transfer that receives the new version has just received its response headers.
        let kept = bench.liveIDs.first { !streaming.contains($0) }
        let (left, actions) = bench.machine.generationChanged(length: size, keeping: kept)
        for id in left { waiting.remove(id) }
        offered = []
        bench.perform(actions)
    }

    private mutating func learnLength() {
        let (isPlausible, actions) = bench.machine.recordLength(size)
        if isPlausible != (bench.storedRanges.bounds?.upperBound ?? 0 <= size) { complaint = "length" }
        bench.perform(actions)
    }

    private mutating func yield() {
        let status = random.pick([PreloadPermission.free, .held, .allowed]) ?? .free
        history.append("preloads are \(status)")
        bench.perform(bench.machine.setPreloadPermission(status))
    }

    private mutating func validate() {
        history.append("validation")
        bench.perform(random.chance(2) ? bench.machine.requireValidation() : bench.machine.validated())
    }

    private mutating func closeOrReopen() {
        history.append("close and reopen")
        bench.perform(bench.machine.close())
        for id in bench.liveIDs where bench.isHeld(id) { complaint = "\(id.number) is paused during closing" }
        // Readers that received `.closed` are closed. Later readers find the resource open.
        for id in bench.machine.plan.readers.ids {
            if case .wait = bench.read(id) { complaint = "\(id.number) waits during closing" }
            waiting.remove(id)
            bench.close(id)
        }
        if random.chance(2) { bench.perform(bench.machine.cancelAll()) }
        bench.perform(bench.machine.reopen())
    }

    // MARK: - Invariants

    mutating func problem() -> String? {
        held.subtract(bench.resumed)
        let model = SchedulerModel(bench)
        return (complaint ?? model.problem(bench) ?? notWoken()).map { "\($0); \(state)" }
    }

    /// Returns a description of a reader that was not woken, even though the machine no longer counts it as waiting.
    /// Returns `nil` if there is none.
    private func notWoken() -> String? {
        for id in waiting.sorted() where !bench.woken.contains(id) {
            guard let reader = bench.machine.plan.readers[id] else { return "\(id.number) is forgotten" }
            if !reader.isWaiting { return "\(id.number) has not been woken" }
        }
        return nil
    }

    /// Lets every transfer receive its bytes, and every reader read them. Returns a description of the readers that do
    /// not reach their ends, if any.
    mutating func goWell() -> String? {
        while !offered.isEmpty { evict() }
        bench.perform(bench.machine.setPreloadPermission(.free))
        bench.perform(bench.machine.recordLength(size).actions)
        for _ in 0..<4000 {
            if bench.machine.plan.readers.ids.isEmpty { return nil }
            bench.now += .seconds(1)
            bench.reap()
            bench.retryNow()
            bench.endDelays()
            for id in bench.liveIDs {
                if bench.isValidation(id), bench.machine.needsValidation {
                    bench.perform(bench.machine.validated())
                    forget(id) { $0.restart(id) }
                } else if streaming.contains(id) {
                    store(id, chunks: 8)
                } else if let asked = bench.asked[id] {
                    streaming.insert(id)
                    let isWhole = asked.upper == nil
                    if isWhole { bench.streamWhole(id, isSequential: true) } else { bench.stream(id) }
                }
            }
            for id in bench.machine.plan.readers.ids {
                bench.take(id)
                switch bench.read(id) {
                case .wait, .stored: continue
                case .end, .unsatisfiable, .failed, .closed: bench.close(id)
                }
            }
            if let problem = SchedulerModel(bench).problem(bench) { return "\(problem); \(state)" }
        }
        return "readers have not ended; \(state)"
    }

    /// The readers and the live transfers, as text for investigating a failure.
    private var state: String {
        let readers = bench.readers.map { id, reader in
            "\(id.number) \(reader.priority) at \(reader.position) \(reader.status)"
                + (reader.demand.map { " \($0)" } ?? "") + (reader.queued == nil ? "" : " queued")
        }
        let transfers = bench.transfers.map { id, state in
            "\(id.number)\(state.isSequential ? "s" : "") \(state.position)..<\(state.end ?? -1) \(state.phase)"
        }
        return "last \(bench.actions.suffix(8)), ranges \(bench.machine.rangeSupport), "
            + "readers \(readers), transfers \(transfers), window \(bench.machine.plan.window), places "
            + "\(bench.machine.plan.failures.all), landed \(bench.machine.storedRanges), evicting \(bench.machine.plan.stored.evicting)"
    }
}

extension SplitMix {
    fileprivate mutating func int(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &self) }

    /// Returns `true` once in `count` times on average.
    fileprivate mutating func chance(_ count: Int) -> Bool { int(1...count) == 1 }

    fileprivate mutating func pick<T>(_ items: [T]) -> T? { items.randomElement(using: &self) }
}

import ByteRanges
import Foundation
import HTTPRanges
import Synchronization

extension Scheduler {
    /// What a reader may take next.
    enum Find {
        case bytes(Generation, Range<Int64>)
        case end
        case failure(CacheError)
    }

    /// Begins a reader of `start ..< end`; nil end: to the end of the resource.
    func openReader(at start: Int64, end: Int64?, priority: Priority) -> ReaderID {
        services.flusher.noteUse(of: key, at: services.time.now())
        return ask { state in
            let (id, actions) = state.machine.openReader(at: start, end: end, priority: priority)
            state.readers[id] = ReaderBinding(position: start, end: end)
            return (id, actions)
        }
    }

    /// Ends a reader; one that waits is woken and finds its end.
    func closeReader(_ id: ReaderID) {
        let waiter = ask { state in
            let binding = state.readers.removeValue(forKey: id)
            return (binding?.waiter, state.machine.closeReader(id))
        }
        waiter?.resume()
    }

    /// The reader has taken all before `position`; waits until there is more, the end, or an error.
    func next(_ id: ReaderID, from position: Int64, limit: Int64) async -> Find {
        feed { state in
            state.readers[id]?.position = position
            return state.machine.advance(id, to: position)
        }
        while true {
            if let find = find(id, limit: limit) { return find }
            await withCheckedContinuation { continuation in
                let mustLookAgain = ask { state in
                    guard state.readers[id] != nil, state.readers[id]?.former == nil else { return (true, []) }
                    let (look, actions) = state.machine.look(id, limit: limit)
                    guard look == .wait else { return (true, actions) }
                    state.readers[id]?.waiter = continuation
                    return (false, actions)
                }
                if mustLookAgain { continuation.resume() }
            }
        }
    }

    /// Looks without waiting; nil: nothing yet.
    private func find(_ id: ReaderID, limit: Int64) -> Find? {
        ask { state in
            guard let binding = state.readers[id] else { return (.end, []) }
            if let former = binding.former { return (self.find(in: former, for: binding, limit: limit), []) }
            let (look, actions) = state.machine.look(id, limit: limit)
            switch look {
            case .landed(let range):
                guard let generation = state.generation else { return (nil, actions) }
                state.readers[id]?.generation = generation
                return (.bytes(generation, range), actions)
            case .wait: return (nil, actions)
            case .end: return (.end, actions)
            case .unsatisfiable(let length):
                let text = "\(address): the range begins at byte \(binding.position), past the end at \(length)"
                return (.failure(CacheError(.unsatisfiableRange, text, status: 416)), actions)
            case .failed:
                let error = state.failure ?? CacheError(.originUnavailable, "\(address): the origin failed")
                return (.failure(error), actions)
            case .closed:
                return (.failure(CacheError(.closed, "\(address): the cache is closed")), actions)
            }
        }
    }

    /// A reader that is in a former version reads on as far as that has landed.
    private func find(in former: Generation, for binding: ReaderBinding, limit: Int64) -> Find {
        let end = min(binding.end ?? .max, former.version.length ?? .max)
        if binding.position >= end { return .end }
        if let found = former.landed.prefix(at: binding.position) {
            let count = min(min(found.upperBound, end) - binding.position, limit)
            return .bytes(former, binding.position..<binding.position + count)
        }
        return .failure(
            CacheError(
                .resourceChanged,
                "\(address): the origin's bytes changed while they were being read, at byte \(binding.position)"))
    }

    /// Bytes have been handed to a reader.
    func served(_ range: Range<Int64>) {
        state.withLock { state in
            let fresh = state.unserved.intersection(range).byteCount
            if fresh > 0 { state.unserved.remove(range) }
            let count = range.upperBound - range.lowerBound
            state.statistics.bytesServed += count
            state.statistics.bytesFromCache += count - fresh
        }
    }

    /// Stored bytes are not what was received; they are holes now, and will be fetched again.
    func lost(_ bad: BadBlocks, of generation: Generation) {
        let ranges = bad.indices.isEmpty ? [bad.range] : bad.indices.map { Block.range(of: $0) }
        if !bad.indices.isEmpty {
            send(.blocksDropped(bad.range))
            services.forget(bad.indices, of: generation)
        }
        let present = generation.landed
        let bytes = ask { state -> (Int64, [StateMachine.Action]) in
            guard state.generation === generation else { return (0, []) }
            state.isComplete = false
            var gone = ByteRangeSet()
            for range in ranges { gone.formUnion(state.machine.landed.intersection(range)) }
            gone.subtract(present)
            return (gone.byteCount, gone.flatMap { state.machine.lost($0) })
        }
        // What was evicted under a reader has been given back by whoever evicted it.
        if !bad.indices.isEmpty { services.capacity.release(generation.unclaim(bytes)) }
    }
}

extension Scheduler {
    /// Stored bytes can't be read: they become holes, to be filled from the origin. Blocks.
    func unreadable(_ range: Range<Int64>, of generation: Generation, cause: any Error) {
        stopKeeping(generation, cause: cause)
        let blocks = Block.roundDown(range.lowerBound)..<Block.roundUp(range.upperBound)
        if let disk = generation.disk {
            let dropped = disk.drop(blocks)
            services.forget(dropped.indices, of: generation)
            services.capacity.release(generation.unclaim(dropped.byteCount))
        }
        feed { state in
            guard state.generation === generation else { return [] }
            state.isComplete = false
            return state.machine.lost(blocks)
        }
    }
}

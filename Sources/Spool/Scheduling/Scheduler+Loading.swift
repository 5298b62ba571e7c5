import ByteRanges
import Foundation
import HTTPRanges
import HTTPTypes
import Synchronization

extension Scheduler {
    /// Opens what the catalog holds of the resource, once.
    ///
    /// A catalog that fails is an event, not an error: play goes on as if nothing were stored.
    func load() async throws {
        let task: Task<Void, any Error>? = state.withLock { state in
            if state.isLoaded { return nil }
            if let loading = state.loading { return loading }
            let task = Task(executorPreference: services.executor) { try await self.open() }
            state.loading = task
            return task
        }
        guard let task else { return }
        do {
            try await task.value
        } catch {
            state.withLock { $0.loading = nil }
            throw error
        }
    }

    private func open() async throws {
        let policy = services.configuration.freshness
        // Only a policy that tells variants apart needs the request's fields before the first request.
        let fields = policy == .http ? try await sourceAddress().address.fields : [:]
        let stored = try? await services.executor.run { self.services.stored(self, requestFields: fields) }
        if stored ?? nil == nil { services.prepareFile() }
        feed { state in
            state.isLoaded = true
            state.loading = nil
            guard let stored = stored ?? nil else { return [] }
            let landed = stored.generation.landed
            state.generation = stored.generation
            state.requestFields = stored.freshness
            let length = stored.generation.version.length
            state.isComplete = length.map { landed.contains(0..<$0) } ?? false
            if stored.generation.version.acceptsRanges == true { state.machine.rangeSupport = .supported }
            let isStale: Bool
            switch policy {
            case .immutable: isStale = false
            case .revalidate: isStale = true
            case .http: isStale = !(stored.freshness?.isFresh(at: services.time.secondsSince1970()) ?? false)
            }
            return state.machine.opened(landed: landed, length: length, needsValidation: isStale)
        }
    }

    /// What is known of the content without asking; nil while the length is not known.
    var contentInformation: ContentInformation? {
        state.withLock { state in
            guard !state.machine.needsValidation, let length = state.machine.length else { return nil }
            return ContentInformation(
                length: length, contentType: state.generation?.version.contentType,
                supportsByteRanges: state.machine.rangeSupport != .unsupported)
        }
    }

    var supportsByteRanges: Bool { state.withLock { $0.machine.rangeSupport != .unsupported } }

    /// The generation that is open now.
    var generation: Generation? { state.withLock { $0.generation } }

    /// Whether every byte is there.
    var isComplete: Bool { state.withLock { $0.isComplete } }

    /// A resource that was closing is wanted again, for the `opening`th time.
    func reopen(_ opening: Int) {
        state.withLock { state in
            state.opening = max(state.opening, opening)
            state.machine.reopen()
        }
    }

    /// Stored blocks that may be evicted now: outside every reader's window. They are holes from here on.
    func release(_ count: Int64) -> (generation: Generation, ranges: [Range<Int64>])? {
        state.withLock { state in
            guard let generation = state.generation, let disk = generation.disk else { return nil }
            let ranges = state.machine.release(count, within: disk.landed)
            if !ranges.isEmpty { state.isComplete = false }
            return ranges.isEmpty ? nil : (generation, ranges)
        }
    }

    /// The disk has let go of what was released.
    func released(_ ranges: [Range<Int64>], of generation: Generation) {
        let kept = generation.landed
        feed { state in
            guard state.generation === generation else { return [] }
            return state.machine.dropped(ranges, kept: kept)
        }
    }

    /// The resource has been removed from the cache: readers finish in what they have open; a new one starts anew.
    func detachGeneration() {
        guard let current = generation else { return }
        services.capacity.release(current.abandon())
        replace(by: nil, keeping: nil)
    }
}

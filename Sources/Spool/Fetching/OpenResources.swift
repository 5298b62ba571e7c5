import Foundation
import HTTPTypes
import SpoolStorage
import Synchronization

/// The resources that are open now: one for each, however many players read it.
///
/// A resource stays here from its first opening until it has closed for good: one that is wanted again while it closes
/// goes on as it is.
final class OpenResources: Sendable {
    /// What tells open resources apart. Under ``FreshnessPolicy/http`` two sources that send different fields may get
    /// different bytes under one key (RFC 9111 §4.1), so each has its own.
    struct Identity: Hashable, Sendable {
        var key: CacheKey
        var fields: [String] = []
        var resolver: UUID?
        /// The identifier of a resource that serves a single request, or `nil` for one that requests share.
        private(set) var request: UUID?

        init(key: CacheKey, source: MediaSource, tellsVariantsApart: Bool) {
            self.key = key
            guard tellsVariantsApart else { return }
            fields = source.headerFields.map { "\($0.name.canonicalName): \($0.value)" }.sorted()
            resolver = source.resolver
        }

        /// Returns the identity of a resource that serves a single request.
        func apart() -> Self {
            var identity = self
            identity.request = UUID()
            return identity
        }

        /// Whether requests from other sources may find and share it.
        var isFound: Bool { request == nil && resolver == nil }
    }

    private struct Entry {
        let resource: OpenResource
        var holders = 1
        /// The last closing. It is overtaken if the resource is opened again.
        var closing: Scheduler.Closing?
    }

    private struct State {
        var entries: [Identity: Entry] = [:]
        /// The identities of each key, in the order in which they were opened.
        var identities: [CacheKey: [Identity]] = [:]
        var closings: [Int: Task<Void, Never>] = [:]
        var closingCount = 0
        /// What those counted that have gone.
        var statistics = TransferStatistics()
        var isClosed = false
    }

    private let state = Mutex(State())

    /// The resource, made if it is not open; to be given back with ``release(_:)``. Nil once all are closed.
    func acquire(_ identity: Identity, make: () -> OpenResource) -> OpenResource? {
        acquire(identity, orAnyBut: nil, make: make)?.resource
    }

    /// The same; or, where it is not open, the oldest one of the same key that is and is not among `passed`.
    func acquire(
        _ identity: Identity, orAnyBut passed: Set<Identity>?, make: () -> OpenResource
    ) -> (identity: Identity, resource: OpenResource)? {
        let (found, isReopened) = state.withLock { state -> ((Identity, OpenResource)?, Bool) in
            if state.isClosed { return (nil, false) }
            var identity = identity
            if let passed, state.entries[identity] == nil,
                let other = state.identities[identity.key]?.first(where: { $0.isFound && !passed.contains($0) })
            {
                identity = other
            }
            if let entry = state.entries[identity] {
                state.entries[identity]?.holders += 1
                entry.closing?.overtake()
                return ((identity, entry.resource), entry.holders == 0)
            }
            let resource = make()
            state.entries[identity] = Entry(resource: resource)
            state.identities[identity.key, default: []].append(identity)
            return ((identity, resource), false)
        }
        if isReopened { found?.1.reopen() }
        return found
    }

    /// One holder less; with the last one the resource lets what is nearly done land, and closes.
    func release(_ identity: Identity) {
        state.withLock { state in
            guard var entry = state.entries[identity] else { return }
            entry.holders -= 1
            if entry.holders == 0 {
                state.closingCount += 1
                let number = state.closingCount
                let closing = Scheduler.Closing()
                entry.closing = closing
                let resource = entry.resource
                state.closings[number] = Task(
                    executorPreference: resource.context.executor.executor(for: .background)
                ) {
                    await self.close(identity, resource, number, closing)
                }
            }
            state.entries[identity] = entry
        }
    }

    private func close(
        _ identity: Identity, _ resource: OpenResource, _ number: Int, _ closing: Scheduler.Closing
    ) async {
        await resource.close(closing)
        let isGone = state.withLock { state in
            guard !closing.isOvertaken else { return false }
            state.entries[identity] = nil
            state.identities[identity.key]?.removeAll { $0 == identity }
            if state.identities[identity.key]?.isEmpty ?? false { state.identities[identity.key] = nil }
            state.statistics += resource.serving.statistics
            return true
        }
        if isGone { resource.end() }
        finish(number)
    }

    private func finish(_ number: Int) { state.withLock { $0.closings[number] = nil } }

    /// What all have counted, those that have gone included.
    var statistics: TransferStatistics {
        state.withLock { state in
            state.entries.values.reduce(into: state.statistics) { $0 += $1.resource.serving.statistics }
        }
    }

    /// Those that are open or closing.
    var open: [OpenResource] { state.withLock { $0.entries.values.map(\.resource) } }

    /// How many are open or closing.
    var count: Int { state.withLock { $0.entries.count } }

    /// Closes all and waits for it; none is opened any more.
    func closeAll() async {
        let resources = state.withLock { state in
            state.isClosed = true
            return state.entries.values.map(\.resource)
        }
        await withTaskGroup(of: Void.self) { group in
            for resource in resources {
                resource.endReaders()
                group.addTask { await resource.close(within: .milliseconds(300)) }
            }
        }
        for task in state.withLock({ Array($0.closings.values) }) { await task.value }
        for resource in resources { resource.end() }
    }

    /// Waits until those that nobody holds any more have closed.
    func waitUntilClosed() async {
        while let task = state.withLock({ $0.closings.values.first }) { await task.value }
    }
}

import Foundation
import HTTPTypes
import SpoolScheduling
import SpoolStorage
import Synchronization

/// The open resources of a cache. There is one resource for each identity, and all readers share it.
///
/// A resource stays in this collection from the time it is first opened until it has closed completely. If it is opened
/// again while it is closing, it is reopened. Every caller tries to reopen it until one of them has finished, so that
/// no caller receives a resource that is still closing.
final class OpenResources: Sendable {
    /// The identity of an open resource.
    ///
    /// Under ``FreshnessPolicy/http``, two sources with different header fields may receive different bytes under one
    /// key (RFC 9111 §4.1). Each source then has its own resource.
    struct Identity: Hashable, Sendable {
        var key: CacheKey
        var fields: [String] = []
        var resolver: UUID?
        /// The identifier of a resource that serves a single request, or `nil` if several requests share the resource.
        private(set) var request: UUID?
        /// The number of resources that were opened while an expired one was still open; see
        /// ``OpenResource/isExpired``.
        fileprivate var attempt = 0

        init(key: CacheKey, source: MediaSource, distinguishesVariants: Bool) {
            self.key = key
            guard distinguishesVariants else { return }
            fields = source.headerFields.map { "\($0.name.canonicalName): \($0.value)" }.sorted()
            resolver = source.resolver
        }

        /// Returns the identity of a resource that serves a single request.
        func separate() -> Self {
            var identity = self
            identity.request = UUID()
            return identity
        }

        /// The same identity, with 0 as its ``attempt``.
        fileprivate var first: Self {
            var identity = self
            identity.attempt = 0
            return identity
        }

        /// Whether requests from other sources may find and share the resource.
        var isFound: Bool { request == nil && resolver == nil }
    }

    private struct Entry {
        let resource: OpenResource
        var holders = 1
        /// The last close operation. It is superseded if the resource is opened again.
        var closing: ResourceClosing?
        /// Whether the resource is closing, or has closed and has not been reopened.
        var mustReopen = false
    }

    private struct State {
        var entries: [Identity: Entry] = [:]
        /// The identities of each key, in the order in which they were opened.
        var identities: [CacheKey: [Identity]] = [:]
        /// For each identity whose open resource expired: the `attempt` of the resource that new readers share.
        var attempts: [Identity: Int] = [:]
        var closings: [Int: Task<Void, Never>] = [:]
        var closingCount = 0
        /// The statistics of resources that have closed.
        var statistics = TransferStatistics()
        var isClosed = false
    }

    private let state = Mutex(State())
    /// A function that is called before a resource is reopened, for tests.
    private let beforeReopening: @Sendable () -> Void

    init(beforeReopening: @escaping @Sendable () -> Void = {}) { self.beforeReopening = beforeReopening }

    /// Returns the identity under which a resource that is requested as `identity` is opened now.
    ///
    /// The result differs from `identity` if the open resource has expired. New readers then share a new resource, and
    /// open readers keep the expired one.
    func current(_ identity: Identity) -> Identity {
        state.withLock { state in
            var current = identity
            current.attempt = state.attempts[identity] ?? 0
            while state.entries[current]?.resource.isExpired == true {
                current.attempt += 1
                state.attempts[identity] = current.attempt
            }
            return current
        }
    }

    /// Returns the resource with the given identity, and creates it if it is not open. The caller releases it with
    /// ``release(_:)``. Returns `nil` after all resources have been closed.
    func acquire(_ identity: Identity, make: () -> OpenResource) -> OpenResource? {
        acquire(identity, orAnyBut: nil, make: make)?.resource
    }

    /// Returns the resource with the given identity. If it is not open, returns the oldest open resource with the same
    /// key whose identity is not in `passed`. If there is none, or `passed` is `nil`, creates the resource. Returns
    /// `nil` after all resources have been closed.
    func acquire(
        _ identity: Identity, orAnyBut passed: Set<Identity>?, make: () -> OpenResource
    ) -> (identity: Identity, resource: OpenResource)? {
        let (found, closing) = state.withLock { state -> ((Identity, OpenResource)?, ResourceClosing?) in
            if state.isClosed { return (nil, nil) }
            var identity = identity
            if let passed, state.entries[identity] == nil,
                let other = state.identities[identity.key]?.first(where: {
                    $0.isFound && !passed.contains($0) && state.entries[$0]?.resource.isExpired == false
                })
            {
                identity = other
            }
            if let entry = state.entries[identity] {
                state.entries[identity]?.holders += 1
                entry.closing?.overtake()
                return ((identity, entry.resource), entry.mustReopen ? entry.closing : nil)
            }
            let resource = make()
            state.entries[identity] = Entry(resource: resource)
            state.identities[identity.key, default: []].append(identity)
            return ((identity, resource), nil)
        }
        if let (identity, resource) = found, let closing {
            // The resource is reopened without holding the lock, because the scheduler takes its own lock.
            beforeReopening()
            resource.scheduler.reopen()
            state.withLock { state in
                if state.entries[identity]?.closing === closing { state.entries[identity]?.mustReopen = false }
            }
        }
        return found
    }

    /// Releases a resource. After the last holder has released the resource, the resource stores the bytes of transfers
    /// that are nearly complete, and closes.
    func release(_ identity: Identity) {
        state.withLock { state in
            guard var entry = state.entries[identity] else { return }
            entry.holders -= 1
            if entry.holders == 0 {
                state.closingCount += 1
                let number = state.closingCount
                let closing = ResourceClosing()
                entry.closing = closing
                entry.mustReopen = true
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
        _ identity: Identity, _ resource: OpenResource, _ number: Int, _ closing: ResourceClosing
    ) async {
        await resource.close(closing)
        let isGone = state.withLock { state in
            guard !closing.isOvertaken else { return false }
            state.entries[identity] = nil
            state.identities[identity.key]?.removeAll { $0 == identity }
            if state.identities[identity.key]?.isEmpty ?? false { state.identities[identity.key] = nil }
            if state.attempts[identity.first] == identity.attempt { state.attempts[identity.first] = nil }
            state.statistics += resource.serving.statistics
            return true
        }
        if isGone { resource.end() }
        finish(number)
    }

    private func finish(_ number: Int) { state.withLock { $0.closings[number] = nil } }

    /// The statistics of all resources, including closed ones.
    var statistics: TransferStatistics {
        state.withLock { state in
            state.entries.values.reduce(into: state.statistics) { $0 += $1.resource.serving.statistics }
        }
    }

    /// The resources that are open or closing.
    var open: [OpenResource] { state.withLock { $0.entries.values.map(\.resource) } }

    /// The number of resources that are open or closing.
    var count: Int { state.withLock { $0.entries.count } }

    /// Closes all resources, and waits until they have closed. Afterwards, no resource can be opened.
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

    /// Cancels the transfers of a key's resources that have no readers. None of their bytes may be stored anymore.
    func discardTransfers(of key: CacheKey) {
        let resources = state.withLock { state in
            (state.identities[key] ?? []).compactMap { state.entries[$0]?.resource }
        }
        for resource in resources { resource.scheduler.discardTransfers() }
    }

    /// Waits until the resources without holders have closed.
    func waitUntilClosed() async {
        while let task = state.withLock({ $0.closings.values.first }) { await task.value }
    }
}

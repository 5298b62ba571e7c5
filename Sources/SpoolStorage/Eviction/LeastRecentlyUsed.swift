/// The strategy that evicts the least recently used resource, from its end.
package struct LeastRecentlyUsed: EvictionStrategy {
    private var queue = LinkedQueues(1)
    private var entries = EvictionEntries()

    package init() {}

    package mutating func update(_ resource: Int, fingerprint: UInt64, _ bytes: EvictableBytes) {
        entries.setBytes(bytes.total, resource)
        if !entries.isEvictable(resource) {
            queue.remove(resource)
        } else if queue.queue(of: resource) == nil {
            queue.append(resource, to: 0)
        }
    }

    package mutating func use(_ resource: Int, startsSession: Bool) {
        if queue.queue(of: resource) != nil { queue.append(resource, to: 0) }
    }

    package mutating func setHeld(_ isHeld: Bool, _ resource: Int) {
        guard entries.setHeld(isHeld, resource) else { return }
        if entries.isEvictable(resource) { queue.append(resource, to: 0) } else { queue.remove(resource) }
    }

    package mutating func markConsumed(_ resource: Int) {}

    package mutating func nextVictim(isLastResort: Bool) -> EvictionVictim? {
        queue.first(0).map { EvictionVictim($0, .whole) }
    }
}

/// The strategy that evicts the largest of the least recently used resources, from its end. Many short resources
/// therefore stay in the cache instead of one long one.
package struct LargestFirst: EvictionStrategy {
    /// The number of least recently used resources that are compared for each eviction.
    private static let reach = 128

    private var queue = LinkedQueues(1)
    private var entries = EvictionEntries()
    /// The resource that was returned last. The same resource is returned until its bytes are evicted.
    private var victim: Int?

    package init() {}

    package mutating func update(_ resource: Int, fingerprint: UInt64, _ bytes: EvictableBytes) {
        entries.setBytes(bytes.total, resource)
        if !entries.isEvictable(resource) {
            remove(resource)
        } else if queue.queue(of: resource) == nil {
            queue.append(resource, to: 0)
        }
    }

    package mutating func use(_ resource: Int, startsSession: Bool) {
        guard queue.queue(of: resource) != nil else { return }
        remove(resource)
        queue.append(resource, to: 0)
    }

    package mutating func setHeld(_ isHeld: Bool, _ resource: Int) {
        guard entries.setHeld(isHeld, resource) else { return }
        if entries.isEvictable(resource) { queue.append(resource, to: 0) } else { remove(resource) }
    }

    package mutating func markConsumed(_ resource: Int) {}

    package mutating func nextVictim(isLastResort: Bool) -> EvictionVictim? {
        if let victim { return EvictionVictim(victim, .whole) }
        var next = queue.first(0)
        var seen = 0
        while let resource = next, seen < Self.reach {
            if victim.map({ entries.bytes(resource) > entries.bytes($0) }) ?? true { victim = resource }
            next = queue.next(after: resource)
            seen += 1
        }
        return victim.map { EvictionVictim($0, .whole) }
    }

    private mutating func remove(_ resource: Int) {
        queue.remove(resource)
        if victim == resource { victim = nil }
    }
}

/// The number of stored bytes of each resource, and whether the resource is held.
struct EvictionEntries: Sendable {
    private var entries: [(bytes: Int64, isHeld: Bool)] = []

    func bytes(_ resource: Int) -> Int64 { resource < entries.count ? entries[resource].bytes : 0 }

    /// Returns whether the resource has bytes, and is not held.
    func isEvictable(_ resource: Int) -> Bool {
        resource < entries.count && entries[resource].bytes > 0 && !entries[resource].isHeld
    }

    mutating func setBytes(_ bytes: Int64, _ resource: Int) {
        grow(resource)
        entries[resource].bytes = bytes
    }

    /// Sets whether the resource is held.
    ///
    /// - Returns: Whether the state has changed.
    mutating func setHeld(_ isHeld: Bool, _ resource: Int) -> Bool {
        grow(resource)
        guard entries[resource].isHeld != isHeld else { return false }
        entries[resource].isHeld = isHeld
        return true
    }

    private mutating func grow(_ resource: Int) {
        while entries.count <= resource { entries.append((0, false)) }
    }
}

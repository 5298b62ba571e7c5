/// Of what was not used lately, the largest goes first, from its end: many songs rather than one film.
package struct LargestFirst: EvictionStrategy {
    /// How many of those that were used longest ago are looked at for each that goes.
    private static let reach = 128

    private var queue = LinkedQueues(1)
    private var entries = EvictionEntries()
    /// What was named last: it goes on being named until its bytes have gone.
    private var victim: Int?

    package init() {}

    package mutating func update(_ resource: Int, fingerprint: UInt64, _ bytes: EvictableBytes) {
        entries.setBytes(bytes.total, resource)
        if !entries.canGo(resource) {
            remove(resource)
        } else if queue.queue(of: resource) == nil {
            queue.append(resource, to: 0)
        }
    }

    package mutating func use(_ resource: Int, isNewSitting: Bool) {
        guard queue.queue(of: resource) != nil else { return }
        remove(resource)
        queue.append(resource, to: 0)
    }

    package mutating func setHeld(_ isHeld: Bool, _ resource: Int) {
        guard entries.setHeld(isHeld, resource) else { return }
        if entries.canGo(resource) { queue.append(resource, to: 0) } else { remove(resource) }
    }

    package mutating func spend(_ resource: Int) {}

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

/// What was used longest ago goes first, from its end.
package struct LeastRecentlyUsed: EvictionStrategy {
    private var queue = LinkedQueues(1)
    private var entries = EvictionEntries()

    package init() {}

    package mutating func update(_ resource: Int, fingerprint: UInt64, _ bytes: EvictableBytes) {
        entries.setBytes(bytes.total, resource)
        if !entries.canGo(resource) {
            queue.remove(resource)
        } else if queue.queue(of: resource) == nil {
            queue.append(resource, to: 0)
        }
    }

    package mutating func use(_ resource: Int, isNewSitting: Bool) {
        if queue.queue(of: resource) != nil { queue.append(resource, to: 0) }
    }

    package mutating func setHeld(_ isHeld: Bool, _ resource: Int) {
        guard entries.setHeld(isHeld, resource) else { return }
        if entries.canGo(resource) { queue.append(resource, to: 0) } else { queue.remove(resource) }
    }

    package mutating func spend(_ resource: Int) {}

    package mutating func nextVictim(isLastResort: Bool) -> EvictionVictim? {
        queue.first(0).map { EvictionVictim($0, .whole) }
    }
}

/// What was used longest ago goes first, from its end.
package struct LeastRecentlyUsed: EvictionStrategy {
    private var queue = LinkedQueues(1)
    private var bytes: [Int64] = []
    private var sittings: [Int32] = []

    package init() {}

    package mutating func update(_ resource: Int, fingerprint: UInt64, _ bytes: EvictableBytes) {
        grow(resource)
        self.bytes[resource] = bytes.total
        if bytes.total == 0 {
            queue.remove(resource)
        } else if queue.queue(of: resource) == nil {
            queue.append(resource, to: 0)
        }
    }

    package mutating func beginSitting(_ resource: Int) {
        grow(resource)
        sittings[resource] += 1
        touch(resource)
    }

    package mutating func endSitting(_ resource: Int, isSpent: Bool) {
        guard resource < sittings.count, sittings[resource] > 0 else { return }
        sittings[resource] -= 1
        touch(resource)
    }

    package mutating func passOver(_ resource: Int) { touch(resource) }

    package mutating func nextVictim(isLastResort: Bool) -> EvictionVictim? {
        var passes = queue.counts[0]
        while let resource = queue.first(0), passes > 0 {
            if sittings[resource] == 0 { return EvictionVictim(resource, .whole) }
            queue.append(resource, to: 0)
            passes -= 1
        }
        return nil
    }

    private mutating func touch(_ resource: Int) {
        if queue.queue(of: resource) != nil { queue.append(resource, to: 0) }
    }

    private mutating func grow(_ resource: Int) {
        while bytes.count <= resource {
            bytes.append(0)
            sittings.append(0)
        }
    }
}

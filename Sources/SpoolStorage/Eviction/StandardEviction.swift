/// Keeps what is played again, and of everything else that with which a play begins.
///
/// S3-FIFO by resource for bodies, a use counted once a sitting. Beside it a pool of starts, itself S3-FIFO, which may have
/// a part of the bytes and keeps the starts of what has lost its body. What somebody said is played once goes first when it
/// has been heard.
package struct StandardEviction: EvictionStrategy {
    private struct Entry {
        var hasBytes = false
        var sittings: Int32 = 0
    }

    private var entries: [Entry] = []
    private var bodies = S3FIFO()
    /// The starts of what has no body.
    private var starts = S3FIFO()
    /// What has been heard, and is played once.
    private var spent = LinkedQueues(1)
    /// What was named last: it goes to make room, and is remembered.
    private var victim: Int?
    /// Of all bytes, the part that starts may have before they are the ones to go.
    package var startShare = 0.2

    /// A strategy that knows of no resource.
    package init() {}

    package mutating func update(_ resource: Int, fingerprint: UInt64, _ bytes: EvictableBytes) {
        grow(resource)
        let isRemembered = victim == resource
        entries[resource].hasBytes = bytes.total > 0
        let isHeld = entries[resource].sittings > 0
        bodies.update(
            resource, fingerprint: fingerprint, bytes: bytes.body, isHeld: isHeld, isRemembered: isRemembered)
        // With a body, its start is none of the pool's; it is remembered, and comes back into the pool's main queue.
        starts.update(
            resource, fingerprint: fingerprint, bytes: bytes.body > 0 ? 0 : bytes.start, isHeld: isHeld,
            isRemembered: bytes.body > 0 || isRemembered)
        if bytes.total == 0 { spent.remove(resource) }
    }

    package mutating func beginSitting(_ resource: Int) {
        grow(resource)
        entries[resource].sittings += 1
        spent.remove(resource)
        bodies.use(resource)
        starts.use(resource)
        bodies.setHeld(true, resource)
        starts.setHeld(true, resource)
    }

    package mutating func endSitting(_ resource: Int, isSpent: Bool) {
        guard resource < entries.count, entries[resource].sittings > 0 else { return }
        entries[resource].sittings -= 1
        let isRead = entries[resource].sittings > 0
        bodies.setHeld(isRead, resource)
        starts.setHeld(isRead, resource)
        if isSpent, !isRead, entries[resource].hasBytes { spent.append(resource, to: 0) }
    }

    package mutating func passOver(_ resource: Int) {
        spent.remove(resource)
        bodies.passOver(resource)
        starts.passOver(resource)
    }

    package mutating func nextVictim(isLastResort: Bool) -> EvictionVictim? {
        let found = next(isLastResort)
        victim = found?.resource
        return found
    }

    private mutating func next(_ isLastResort: Bool) -> EvictionVictim? {
        if let resource = spent.first(0) { return EvictionVictim(resource, .whole) }
        let total = Double(bodies.byteCount + starts.byteCount)
        if Double(starts.byteCount) > startShare * total, let resource = starts.nextVictim() {
            return EvictionVictim(resource, .start)
        }
        if let resource = bodies.nextVictim(isMainSpared: !isLastResort) { return EvictionVictim(resource, .body) }
        return isLastResort ? starts.nextVictim().map { EvictionVictim($0, .start) } : nil
    }

    private mutating func grow(_ resource: Int) {
        while entries.count <= resource { entries.append(Entry()) }
    }
}

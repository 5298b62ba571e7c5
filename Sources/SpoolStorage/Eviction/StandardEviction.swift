/// Keeps what is played again, and of everything else that with which a play begins.
///
/// S3-FIFO by resource for bodies, a use counted once a sitting. Beside it a pool of starts, itself S3-FIFO, which may
/// have a part of the bytes and keeps the starts of what has lost its body. What somebody said is played once goes
/// first when it has been heard.
package struct StandardEviction: EvictionStrategy {
    private struct Entry {
        var byteCount: Int64 = 0
        var isHeld = false
        var isSpent = false
        /// It was named since its bytes last became more: where none are left, it is remembered.
        var isNamed = false
    }

    private var entries: [Entry] = []
    private var bodies = S3FIFO()
    /// The starts of what has no body.
    private var starts = S3FIFO()
    /// What has been heard, and is played once.
    private var spent = LinkedQueues(1)
    /// Of all bytes, the part that starts may have before they are the ones to go.
    package var startShare = 0.2

    /// A strategy that knows of no resource.
    package init() {}

    package mutating func update(_ resource: Int, fingerprint: UInt64, _ bytes: EvictableBytes) {
        grow(resource)
        let (isHeld, isNamed) = (entries[resource].isHeld, entries[resource].isNamed)
        if bytes.total == 0 || bytes.total > entries[resource].byteCount { entries[resource].isNamed = false }
        entries[resource].byteCount = bytes.total
        bodies.update(resource, fingerprint: fingerprint, bytes: bytes.body, isHeld: isHeld, isRemembered: isNamed)
        // With a body, its start is none of the pool's; it is remembered, and comes back into the pool's main queue.
        starts.update(
            resource, fingerprint: fingerprint, bytes: bytes.body > 0 ? 0 : bytes.start, isHeld: isHeld,
            isRemembered: bytes.body > 0 || isNamed)
        if bytes.total == 0 {
            spent.remove(resource)
            entries[resource].isSpent = false
        }
    }

    package mutating func use(_ resource: Int, isNewSitting: Bool) {
        guard isNewSitting else { return }
        grow(resource)
        entries[resource].isSpent = false
        spent.remove(resource)
        bodies.use(resource)
        starts.use(resource)
    }

    package mutating func setHeld(_ isHeld: Bool, _ resource: Int) {
        grow(resource)
        guard entries[resource].isHeld != isHeld else { return }
        entries[resource].isHeld = isHeld
        bodies.setHeld(isHeld, resource)
        starts.setHeld(isHeld, resource)
        if isHeld { spent.remove(resource) } else if entries[resource].isSpent { spent.append(resource, to: 0) }
    }

    package mutating func spend(_ resource: Int) {
        guard resource < entries.count, entries[resource].byteCount > 0, !entries[resource].isSpent else { return }
        entries[resource].isSpent = true
        if !entries[resource].isHeld { spent.append(resource, to: 0) }
    }

    package mutating func nextVictim(isLastResort: Bool) -> EvictionVictim? {
        let found = next(isLastResort)
        if let found { entries[found.resource].isNamed = true }
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

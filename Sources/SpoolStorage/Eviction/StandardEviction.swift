/// The strategy that keeps media that is played repeatedly, and the start of all other media.
///
/// Bodies are evicted by S3-FIFO, and each playback session counts as one use. A separate S3-FIFO pool contains the
/// starts of resources that have lost their body, up to a share of all bytes. Media that is to be played only once is
/// evicted first, once it has been played to its end.
package struct StandardEviction: EvictionStrategy {
    private struct Entry {
        var byteCount: Int64 = 0
        var isHeld = false
        var isConsumed = false
        /// Whether the resource has been returned as a victim since it was added or its bytes last increased.
        var wasReturnedAsVictim = false
    }

    private var entries: [Entry] = []
    private var bodies = S3FIFO()
    /// The starts of resources without a body.
    private var starts = S3FIFO()
    /// Resources that are to be played only once, and were played to their end.
    private var spent = LinkedQueues(1)
    /// The share of all bytes above which starts are evicted.
    package var startShare = 0.2

    /// Creates a strategy without resources.
    package init() {}

    package mutating func update(_ resource: Int, fingerprint: UInt64, _ bytes: EvictableBytes) {
        grow(resource)
        let (isHeld, wasReturnedAsVictim) = (entries[resource].isHeld, entries[resource].wasReturnedAsVictim)
        if bytes.total == 0 || bytes.total > entries[resource].byteCount {
            entries[resource].wasReturnedAsVictim = false
        }
        entries[resource].byteCount = bytes.total
        bodies.update(
            resource, fingerprint: fingerprint, bytes: bytes.body, isHeld: isHeld, isRemembered: wasReturnedAsVictim)
        // A start with a body is not in the pool. It stays as a ghost, so that it later enters the main queue of the
        // pool.
        starts.update(
            resource, fingerprint: fingerprint, bytes: bytes.body > 0 ? 0 : bytes.start, isHeld: isHeld,
            isRemembered: bytes.body > 0 || wasReturnedAsVictim)
        if bytes.total == 0 {
            spent.remove(resource)
            entries[resource].isConsumed = false
        }
    }

    package mutating func use(_ resource: Int, startsSession: Bool) {
        guard startsSession else { return }
        grow(resource)
        entries[resource].isConsumed = false
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
        if isHeld { spent.remove(resource) } else if entries[resource].isConsumed { spent.append(resource, to: 0) }
    }

    package mutating func markConsumed(_ resource: Int) {
        guard resource < entries.count, entries[resource].byteCount > 0, !entries[resource].isConsumed else { return }
        entries[resource].isConsumed = true
        if !entries[resource].isHeld { spent.append(resource, to: 0) }
    }

    package mutating func nextVictim(isLastResort: Bool) -> EvictionVictim? {
        let found = next(isLastResort)
        if let found { entries[found.resource].wasReturnedAsVictim = true }
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

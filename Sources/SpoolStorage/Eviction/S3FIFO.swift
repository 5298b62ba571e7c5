/// Three queues, first in, first out: what is new passes through a small one, and stays only if it is used again.
///
/// "FIFO queues are all you need for cache eviction" (Yang et al., SOSP 2023), weighted by bytes. What leaves the small
/// queue unused is remembered by its fingerprint, the *ghosts*, as many as there are residents, and comes into the main
/// queue at once if it returns. A use is a count up to 3; nothing moves by it. What nobody has used again, and is so large
/// that others would have to go for it, goes before them, as a film among songs. What is held is in no queue, and comes
/// back behind the others.
struct S3FIFO: Sendable {
    private static let (small, main, large) = (0, 1, 2)
    /// Of all bytes, the part that what is new may have before it is what goes.
    private static let smallShare = 0.14
    /// Of that part, what one resource may have before it is large.
    private static let largeShare = 0.25

    private struct Entry {
        var bytes: Int64 = 0
        var fingerprint: UInt64 = 0
        var uses: UInt8 = 0
        /// In the main queue, also while it is held.
        var isMain = false
        var isHeld = false
        var isThere = false
    }

    private var entries: [Entry] = []
    private var queues = LinkedQueues(3)
    private var ghosts = GhostList()
    private var bytes: (new: Int64, main: Int64) = (0, 0)
    private var count = 0

    /// Bytes of all that is there.
    var byteCount: Int64 { bytes.new + bytes.main }

    private var largeLimit: Int64 { Int64(Self.largeShare * Self.smallShare * Double(byteCount)) }

    func contains(_ resource: Int) -> Bool { resource < entries.count && entries[resource].isThere }

    /// So many bytes of the resource are there from now on.
    ///
    /// - Parameters:
    ///   - isHeld: Whether it is not to be named.
    ///   - isRemembered: Where none are left: whether it is to be known again.
    mutating func update(_ resource: Int, fingerprint: UInt64, bytes now: Int64, isHeld: Bool, isRemembered: Bool) {
        if !contains(resource) {
            guard now > 0 else { return }
            while entries.count <= resource { entries.append(Entry()) }
            entries[resource] = Entry(
                fingerprint: fingerprint, isMain: ghosts.remove(fingerprint), isHeld: isHeld, isThere: true)
            count += 1
            queue(resource)
        }
        setHeld(isHeld, resource)
        add(now - entries[resource].bytes, isMain: entries[resource].isMain)
        entries[resource].bytes = now
        if now == 0 {
            queues.remove(resource)
            count -= 1
            if isRemembered { ghosts.insert(entries[resource].fingerprint, limit: max(64, count)) }
            entries[resource] = Entry()
        } else if queues.queue(of: resource) == Self.small, now > largeLimit {
            queues.append(resource, to: Self.large)
        }
    }

    /// Whether the resource is not to be named.
    mutating func setHeld(_ isHeld: Bool, _ resource: Int) {
        guard contains(resource), entries[resource].isHeld != isHeld else { return }
        entries[resource].isHeld = isHeld
        queue(resource)
    }

    /// A sitting has begun.
    mutating func use(_ resource: Int) {
        if contains(resource) { entries[resource].uses = min(3, entries[resource].uses + 1) }
    }

    /// What is to go: it stays first until its bytes have gone. Nil if nothing may.
    ///
    /// - Parameter isMainSpared: Whether, where what is new has too much and all of it is held, nothing goes for it: its
    ///   readers have left behind what is worth less.
    mutating func nextVictim(isMainSpared: Bool = false) -> Int? {
        // A step that names nothing takes a use away, or moves what is no longer large, or is used, on for good.
        while true {
            let isNewFull = Double(bytes.new) > Self.smallShare * Double(byteCount)
            let new = queues.first(Self.large) ?? queues.first(Self.small)
            let main = isNewFull && isMainSpared ? nil : queues.first(Self.main)
            guard let resource = isNewFull ? new ?? main : main ?? new else { return nil }
            if entries[resource].isMain {
                guard entries[resource].uses > 0 else { return resource }
                entries[resource].uses -= 1
                queue(resource)
            } else if entries[resource].uses > 0 {
                entries[resource].uses = 0
                add(-entries[resource].bytes, isMain: false)
                entries[resource].isMain = true
                add(entries[resource].bytes, isMain: true)
                queue(resource)
            } else if queues.queue(of: resource) == Self.large, entries[resource].bytes <= largeLimit {
                queues.append(resource, to: Self.small)
            } else {
                return resource
            }
        }
    }

    private mutating func queue(_ resource: Int) {
        if entries[resource].isHeld {
            queues.remove(resource)
        } else {
            let isLarge = entries[resource].bytes > largeLimit
            queues.append(resource, to: entries[resource].isMain ? Self.main : isLarge ? Self.large : Self.small)
        }
    }

    private mutating func add(_ count: Int64, isMain: Bool) {
        if isMain { bytes.main += count } else { bytes.new += count }
    }
}

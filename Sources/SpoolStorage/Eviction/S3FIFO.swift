/// An eviction algorithm with first-in, first-out queues. New resources pass through a small queue, and stay only if
/// they are used again.
///
/// The algorithm is S3-FIFO, weighted by bytes ("FIFO queues are all you need for cache eviction", Yang et al., SOSP
/// 2023). The fingerprints of resources that leave the small queue unused are stored as *ghosts*. Their number is at
/// most that of the resources, or 64 if there are fewer resources. A resource that returns while it is a ghost enters
/// the main queue immediately. Uses are counted up to 3, and do not move a resource. A resource that was not used again
/// is evicted before others if it is so large that it would displace them. A held resource is not in any queue, and is
/// appended to a queue when it is released.
struct S3FIFO: Sendable {
    private static let (small, main, large) = (0, 1, 2)
    /// The share of all bytes above which new resources are evicted.
    private static let smallShare = 0.14
    /// The part of ``smallShare`` above which a resource counts as large.
    private static let largeShare = 0.25

    private struct Entry {
        var bytes: Int64 = 0
        var fingerprint: UInt64 = 0
        var uses: UInt8 = 0
        /// Whether the resource belongs to the main queue, even while it is held.
        var isMain = false
        var isHeld = false
        var isPresent = false
    }

    private var entries: [Entry] = []
    private var queues = LinkedQueues(3)
    private var ghosts = GhostList()
    private var bytes: (new: Int64, main: Int64) = (0, 0)
    private var count = 0

    /// The number of bytes of all resources.
    var byteCount: Int64 { bytes.new + bytes.main }

    private var largeLimit: Int64 { Int64(Self.largeShare * Self.smallShare * Double(byteCount)) }

    func contains(_ resource: Int) -> Bool { resource < entries.count && entries[resource].isPresent }

    /// Sets the number of bytes of a resource.
    ///
    /// - Parameters:
    ///   - isHeld: Whether the resource must not be evicted.
    ///   - isRemembered: Whether the resource becomes a ghost if it has no bytes.
    mutating func update(_ resource: Int, fingerprint: UInt64, bytes now: Int64, isHeld: Bool, isRemembered: Bool) {
        if !contains(resource) {
            guard now > 0 else { return }
            while entries.count <= resource { entries.append(Entry()) }
            entries[resource] = Entry(
                fingerprint: fingerprint, isMain: ghosts.remove(fingerprint), isHeld: isHeld, isPresent: true)
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

    /// Sets whether the resource must not be evicted.
    mutating func setHeld(_ isHeld: Bool, _ resource: Int) {
        guard contains(resource), entries[resource].isHeld != isHeld else { return }
        entries[resource].isHeld = isHeld
        queue(resource)
    }

    /// Counts the start of a playback session.
    mutating func use(_ resource: Int) {
        if contains(resource) { entries[resource].uses = min(3, entries[resource].uses + 1) }
    }

    /// Returns the resource to evict, which stays the same until its bytes are evicted; `nil` if there is none.
    ///
    /// - Parameter isMainSpared: Whether to return `nil` if new resources exceed their share and all of them are held.
    ///   In that case, the bytes that their readers have passed are less valuable than the resources in the main queue.
    mutating func nextVictim(isMainSpared: Bool = false) -> Int? {
        // Each iteration without a result reduces a use count, or permanently moves a resource that is used or no
        // longer large.
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

/// The fingerprints of recently evicted resources.
struct GhostList: Sendable {
    /// The number of each fingerprint. A resource that returns and is evicted again gets a higher number.
    private var numbers: [UInt64: UInt64] = [:]
    private var order: [(fingerprint: UInt64, number: UInt64)] = []
    private var first = 0
    private var next: UInt64 = 0

    init() {}

    /// The number of entries, including resources that have returned since.
    var entryCount: Int { order.count }

    /// Adds a fingerprint, and removes the oldest fingerprints beyond `limit`.
    mutating func insert(_ fingerprint: UInt64, limit: Int) {
        next += 1
        numbers[fingerprint] = next
        order.append((fingerprint, next))
        while first < order.count, numbers.count > limit || numbers[order[first].fingerprint] != order[first].number {
            if numbers[order[first].fingerprint] == order[first].number { numbers[order[first].fingerprint] = nil }
            first += 1
        }
        // Removes the entries of resources that have returned.
        guard order.count - first > 2 * numbers.count + 64 || first > order.count / 2 + 64 else { return }
        order = order[first...].filter { numbers[$0.fingerprint] == $0.number }
        first = 0
    }

    /// Removes a fingerprint.
    ///
    /// - Returns: Whether the list contained the fingerprint.
    mutating func remove(_ fingerprint: UInt64) -> Bool { numbers.removeValue(forKey: fingerprint) != nil }
}

/// Queues of resources. Each resource is in at most one of them. Every change takes constant time.
struct LinkedQueues: Sendable {
    private struct Node {
        var previous: Int32 = -1
        var next: Int32 = -1
        var queue: Int8 = -1
    }

    private var nodes: [Node] = []
    private var firsts: [Int32]
    private var lasts: [Int32]
    private(set) var counts: [Int]

    /// Creates `count` queues, numbered from 0.
    init(_ count: Int) {
        firsts = Array(repeating: -1, count: count)
        lasts = firsts
        counts = Array(repeating: 0, count: count)
    }

    /// Returns the queue that contains a resource; `nil` if there is none.
    func queue(of resource: Int) -> Int? {
        guard resource < nodes.count, nodes[resource].queue >= 0 else { return nil }
        return Int(nodes[resource].queue)
    }

    func first(_ queue: Int) -> Int? { firsts[queue] < 0 ? nil : Int(firsts[queue]) }

    func next(after resource: Int) -> Int? { nodes[resource].next < 0 ? nil : Int(nodes[resource].next) }

    /// Moves a resource to the end of a queue.
    mutating func append(_ resource: Int, to queue: Int) {
        remove(resource)
        while nodes.count <= resource { nodes.append(Node()) }
        let last = lasts[queue]
        nodes[resource] = Node(previous: last, next: -1, queue: Int8(queue))
        if last < 0 { firsts[queue] = Int32(resource) } else { nodes[Int(last)].next = Int32(resource) }
        lasts[queue] = Int32(resource)
        counts[queue] += 1
    }

    mutating func remove(_ resource: Int) {
        guard let queue = queue(of: resource) else { return }
        let node = nodes[resource]
        if node.previous < 0 { firsts[queue] = node.next } else { nodes[Int(node.previous)].next = node.next }
        if node.next < 0 { lasts[queue] = node.previous } else { nodes[Int(node.next)].previous = node.previous }
        nodes[resource] = Node()
        counts[queue] -= 1
    }
}

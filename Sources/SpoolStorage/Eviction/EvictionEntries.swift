/// How many bytes resources have, and which are held.
struct EvictionEntries: Sendable {
    private var entries: [(bytes: Int64, isHeld: Bool)] = []

    func bytes(_ resource: Int) -> Int64 { resource < entries.count ? entries[resource].bytes : 0 }

    /// Whether it has bytes, and is not held.
    func canGo(_ resource: Int) -> Bool {
        resource < entries.count && entries[resource].bytes > 0 && !entries[resource].isHeld
    }

    mutating func setBytes(_ bytes: Int64, _ resource: Int) {
        grow(resource)
        entries[resource].bytes = bytes
    }

    /// - Returns: Whether that changes anything.
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

/// Some queues of resources, of which each is in at most one: every change is a few assignments.
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

    /// So many queues, numbered from 0.
    init(_ count: Int) {
        firsts = Array(repeating: -1, count: count)
        lasts = firsts
        counts = Array(repeating: 0, count: count)
    }

    /// Which one the resource is in.
    func queue(of resource: Int) -> Int? {
        guard resource < nodes.count, nodes[resource].queue >= 0 else { return nil }
        return Int(nodes[resource].queue)
    }

    func first(_ queue: Int) -> Int? { firsts[queue] < 0 ? nil : Int(firsts[queue]) }

    func next(after resource: Int) -> Int? { nodes[resource].next < 0 ? nil : Int(nodes[resource].next) }

    /// Puts a resource at a queue's end, out of where it was.
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

import ByteRanges

/// A parser that finds the bytes a player needs in Matroska and WebM files (RFC 9559).
///
/// These bytes are everything before the first cluster, the first seconds, and elements that the seek head lists, such
/// as cues, tags and attachments.
struct MatroskaParser {
    /// An element (RFC 8794): its identifier, and the position of its body.
    private struct Element {
        var id: UInt64
        var start: Int64
        var body: Int64
        /// The size of the body, or `nil` if the body ends with the parent element, or before the next element of the
        /// same kind.
        var size: Int64?
        var end: Int64 { size.map { body.adding($0) } ?? .max }
    }

    /// The maximum number of elements before a cluster, or in a seek head.
    private static let maximumElementCount = 128
    /// The maximum size of elements that a player needs first.
    private static let maximumElementSize: Int64 = 32 << 20

    let bytes: ContainerBytes

    /// The elements that have been found so far.
    private struct Found {
        /// The offsets of elements that a seek head lists, relative to the segment's body.
        var named: [Int64] = []
        var duration: Double?
        var cluster: Element?
    }

    /// Adds the bytes that a player needs.
    func parse(_ plan: inout StartPlan) throws(ContainerBytes.Stop) {
        let head = try element(at: 0)
        let segment = try element(at: head.end)
        guard segment.id == 0x1853_8067 else { throw .malformed }
        var found = Found()
        var offset = segment.body
        for _ in 0..<Self.maximumElementCount where offset < segment.end {
            let element = try element(at: offset)
            plan.need(0..<element.body)
            if element.id == ID.cluster {
                found.cluster = element
                break
            }
            guard element.size != nil else { throw .malformed }
            try readElement(at: element, &found, &plan)
            offset = element.end
        }
        guard let cluster = found.cluster else { throw .malformed }
        try readBehind(cluster, of: segment, &found, &plan)
        if let length = bytes.length, let duration = found.duration {
            plan.learn(min(segment.end, length) - cluster.start, take: duration)
        }
        // Live streams do not state a duration.
        if plan.bytesPerSecond == nil, let size = cluster.size, size < 4 * StartPlan.headCount {
            plan.need(cluster.start..<cluster.end)
        }
        plan.needMedia(from: cluster.start)
    }

    /// Examines the elements that a seek head lists, if they follow the first cluster.
    private func readBehind(
        _ cluster: Element, of segment: Element, _ found: inout Found, _ plan: inout StartPlan
    ) throws(ContainerBytes.Stop) {
        var next = 0
        while next < found.named.count, next < Self.maximumElementCount {
            let offset = segment.body.adding(found.named[next])
            next += 1
            guard offset > cluster.start, offset < bytes.length ?? .max else { continue }
            let element = try element(at: offset)
            guard element.id != ID.cluster, element.size != nil else { continue }
            plan.need(element.start..<element.body)
            try readElement(at: element, &found, &plan)
        }
    }

    private enum ID {
        static let seekHead: UInt64 = 0x114D_9B74
        static let seek: UInt64 = 0x4DBB
        static let seekPosition: UInt64 = 0x53AC
        static let information: UInt64 = 0x1549_A966
        static let timestampScale: UInt64 = 0x2A_D7B1
        static let duration: UInt64 = 0x4489
        static let cluster: UInt64 = 0x1F43_B675
        static let void: UInt64 = 0xEC
    }

    private func readElement(
        at element: Element, _ found: inout Found, _ plan: inout StartPlan
    ) throws(ContainerBytes.Stop) {
        guard element.id != ID.void, element.size ?? .max <= Self.maximumElementSize else { return }
        plan.need(element.start..<element.end)
        switch element.id {
        case ID.information: found.duration = try duration(in: element) ?? found.duration
        case ID.seekHead:
            for seek in try children(of: element) where seek.id == ID.seek {
                for child in try children(of: seek) where child.id == ID.seekPosition {
                    guard let size = child.size, (1...8).contains(size) else { continue }
                    let position = try bytes.size(at: child.body, bytes: size)
                    if found.named.count < Self.maximumElementCount, !found.named.contains(position) {
                        found.named.append(position)
                    }
                }
            }
        default: break
        }
    }

    /// Returns the duration in seconds.
    private func duration(in element: Element) throws(ContainerBytes.Stop) -> Double? {
        var scale = 1_000_000.0
        var duration: Double?
        for child in try children(of: element) {
            guard let size = child.size, (1...8).contains(size) else { continue }
            if child.id == ID.timestampScale { scale = Double(try bytes.number(at: child.body, bytes: size)) }
            if child.id == ID.duration, size == 4 || size == 8 {
                duration = try bytes.float(at: child.body, bytes: size)
            }
        }
        return duration.map { $0 * scale / 1e9 }
    }

    private func children(of parent: Element) throws(ContainerBytes.Stop) -> [Element] {
        var children: [Element] = []
        var offset = parent.body
        while offset < parent.end, children.count < Self.maximumElementCount {
            let child = try element(at: offset)
            guard child.end <= parent.end else { throw .malformed }
            children.append(child)
            offset = child.end
        }
        return children
    }

    private func element(at offset: Int64) throws(ContainerBytes.Stop) -> Element {
        let first = try bytes.size(at: offset, bytes: 1)
        let idCount = Int64(UInt8(truncatingIfNeeded: first).leadingZeroBitCount) + 1
        guard idCount <= 4 else { throw .malformed }
        let id = try bytes.number(at: offset, bytes: idCount)
        let sizeStart = offset.adding(idCount)
        let sizeFirst = try bytes.size(at: sizeStart, bytes: 1)
        let sizeCount = Int64(UInt8(truncatingIfNeeded: sizeFirst).leadingZeroBitCount) + 1
        guard sizeCount <= 8 else { throw .malformed }
        let mask: UInt64 = 1 << (7 * UInt64(sizeCount)) - 1
        let size = try bytes.number(at: sizeStart, bytes: sizeCount) & mask
        return Element(
            id: id, start: offset, body: sizeStart.adding(sizeCount), size: size == mask ? nil : Int64(clamping: size))
    }
}

import ByteRanges
import Foundation
import Testing

@testable import Spool

/// An in-memory search for the ranges that a player needs. It also checks the rules that apply to any bytes.
struct ContainerSearch {
    var plan: StartPlan
    /// The ranges that were read.
    var looks: [Range<Int64>] = []
    /// The ranges that would be fetched if each read fetched the maximum number of bytes.
    var fetchedRanges = ByteRangeSet()

    /// Searches `data`.
    ///
    /// - Parameter length: The length that the origin sends, which may be wrong.
    init(_ data: Data, length: Int64?, seconds: Double? = nil, isSeekable: Bool = true) throws {
        var search = StartRanges(length: length, seconds: seconds, isSeekable: isSeekable)
        var held: Int64 = 0
        while true {
            switch search.next() {
            case .found(let plan):
                self.plan = plan
                let end = length ?? .max
                #expect(plan.ranges.bounds.map { $0.lowerBound >= 0 && $0.upperBound <= end } ?? true)
                #expect(plan.ranges.byteCount <= StartPlan.maximumByteCount)
                return
            case .read(let part, let within):
                looks.append(part)
                held += Int64(part.count)
                try #require(looks.count <= 160 && held <= 2 << 20, "\(looks.count) looks, \(held) bytes")
                try #require(part.lowerBound >= 0 && !part.isEmpty && part.count <= 1 << 17, "\(part)")
                #expect(within.lowerBound == part.lowerBound && within.upperBound >= part.upperBound)
                #expect(part.upperBound <= length ?? .max)
                fetchedRanges.insert(within)
                let (lower, upper) = (min(part.lowerBound, Int64(data.count)), min(part.upperBound, Int64(data.count)))
                search.take(data[data.startIndex + Int(lower)..<data.startIndex + Int(upper)])
            }
        }
    }

    /// Searches a complete file.
    init(_ data: Data, seconds: Double? = nil) throws {
        try self.init(data, length: Int64(data.count), seconds: seconds)
    }
}

import Foundation
import Testing

@testable import AVFoundation

/// A seeded run of a request pattern on a resource of 1,000 bytes.
///
/// A reader reads and seeks, and a delegate delivers the requested bytes in pieces, in any order.
struct RandomLoading {
    /// The open requests by token, each with its next offset and its end.
    typealias Open = [Int: (next: Int, end: Int)]

    /// The number of steps.
    var steps: Int
    /// The average number of steps between seeks.
    var stepsPerSeek: Int
    /// The average number of reads between seeks. The other steps deliver bytes.
    var reads: Int

    private static let resource = Data((0..<1000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 / 7) })

    /// Runs the steps that `seed` determines. Each byte must equal the resource's byte at that offset, and a read may
    /// end only at the end of the resource.
    ///
    /// - Parameters:
    ///   - checkWait: A closure that is called when a read has to wait. Its arguments are the open requests and whether
    ///     the read has caused a request.
    ///   - check: A closure that is called after each step.
    func run<Pattern: RequestPattern>(
        _ pattern: inout Pattern, seed: UInt64, checkWait: (Open, Bool) -> Void = { _, _ in },
        check: (Pattern, Open) -> Void = { _, _ in }
    ) {
        var generator = SeededGenerator(seed: seed)
        var open: Open = [:]
        var position = 0
        for _ in 0..<steps {
            var actions: [LoadingAction] = []
            switch Int.random(in: 0..<stepsPerSeek, using: &generator) {
            case 0:
                position = Int.random(in: 0..<1000, using: &generator)
                pattern.seek(to: Int64(position))
            case 1...reads:
                let (response, asked) = pattern.read(limit: Int.random(in: 1..<60, using: &generator))
                actions = asked
                if case .bytes(let data) = response {
                    #expect(data == Self.resource.dropFirst(position).prefix(data.count))
                    position += data.count
                } else {
                    #expect(response == (position >= 1000 ? .endOfResource : .wait))
                    if position < 1000 { checkWait(open, !asked.isEmpty) }
                }
            default:
                guard let (token, request) = open.randomElement(using: &generator) else { continue }
                let end = min(request.end, request.next + Int.random(in: 1..<40, using: &generator))
                actions = pattern.received(Self.resource.subdata(in: request.next..<end), token: token)
                open[token] = (end, request.end)
                if end == request.end {
                    open[token] = nil
                    actions += pattern.finished(token: token, information: nil)
                }
            }
            for action in actions {
                switch action {
                case .askData(let token, let offset, let length, _):
                    open[token] = (Int(offset), Int(offset + (length ?? 0)))
                case .cancel(let token): open[token] = nil
                case .requestInformation, .wakeReader: break
                }
            }
            check(pattern, open)
        }
    }
}

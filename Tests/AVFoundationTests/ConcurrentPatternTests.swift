import Foundation
import Testing

@testable import AVFoundation

@Suite("Which loading requests a player makes that has several open")
struct ConcurrentPatternTests {
    private static let policy: LoadingPolicy = {
        var policy = LoadingPolicy.hostile
        (policy.readLength, policy.cancelAbove, policy.keepBehind, policy.cancelsLateBy) = (40, 100, 20, 60)
        return policy
    }()

    private func opened(length: Int64? = 1000) -> ConcurrentPattern {
        var pattern = ConcurrentPattern(policy: Self.policy)
        #expect(pattern.open() == [.askInformation(token: 1)])
        let information = ContentInformation(
            contentType: "public.mp3", contentLength: length, isByteRangeAccessSupported: length != nil)
        _ = pattern.finished(token: 1, information: information)
        return pattern
    }

    @Test("E80: the first read asks for two stretches, the tail, and everything from further on")
    func first() {
        var pattern = opened()
        let (result, actions) = pattern.read(limit: 10)
        #expect(result == .wait)
        #expect(
            actions == [
                .askData(token: 2, offset: 0, length: 40, toEnd: false),
                .askData(token: 3, offset: 40, length: 40, toEnd: false),
                .askData(token: 4, offset: 960, length: 40, toEnd: false),
                .askData(token: 5, offset: 80, length: 920, toEnd: true),
            ])
    }

    @Test("E80: after a jump information is asked for again, and the former requests are called off bytes later")
    func lateCancel() {
        var pattern = opened()
        _ = pattern.read(limit: 10)
        pattern.seek(to: 500)
        let (_, actions) = pattern.read(limit: 10)
        #expect(
            actions.contains(.askInformation(token: 9))
                && !actions.contains { if case .cancel = $0 { true } else { false } })
        #expect(pattern.received(Data(count: 30), token: 5) == [])
        let late = pattern.received(Data(count: 30), token: 5)
        #expect(late == [.cancel(token: 2), .cancel(token: 3), .cancel(token: 4), .cancel(token: 5)])
    }

    @Test("A22: without ranges there is one request, from the beginning")
    func sequential() {
        var pattern = opened(length: nil)
        #expect(pattern.read(limit: 10).1 == [.askData(token: 2, offset: 0, length: nil, toEnd: true)])
        #expect(pattern.received(Data(count: 500), token: 2) == [.wakeReader])
        #expect(pattern.read(limit: 500).0 == .bytes(Data(count: 500)))
        _ = pattern.finished(token: 2, information: nil)
        #expect(pattern.read(limit: 1).0 == .endOfResource)
    }

    @Test("Whatever is read and sought, the bytes are the resource's, and every read gets on", arguments: 0..<20)
    func random(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let resource = Data((0..<1000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 / 7) })
        var pattern = opened()
        var open: [Int: (next: Int, end: Int)] = [:]
        var position = 0
        for _ in 0..<3000 {
            var actions: [LoadingAction] = []
            switch Int.random(in: 0..<20, using: &generator) {
            case 0:
                position = Int.random(in: 0..<1000, using: &generator)
                pattern.seek(to: Int64(position))
            case 1..<9:
                let (response, asked) = pattern.read(limit: Int.random(in: 1..<60, using: &generator))
                actions = asked
                if case .bytes(let data) = response {
                    #expect(data == resource.dropFirst(position).prefix(data.count))
                    position += data.count
                } else {
                    #expect(response == (position >= 1000 ? .endOfResource : .wait))
                    #expect(position >= 1000 || !open.isEmpty || !asked.isEmpty)
                }
            default:
                guard let (token, request) = open.randomElement(using: &generator) else { continue }
                let end = min(request.end, request.next + Int.random(in: 1..<40, using: &generator))
                actions = pattern.received(resource.subdata(in: request.next..<end), token: token)
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
                case .askInformation, .wakeReader: break
                }
            }
        }
    }
}

import Testing

@testable import SpoolCLI

@Suite("Playback plan")
struct PlayPlanTests {
    private func steps(_ plan: PlayPlan, at times: [Double]) -> [PlayPlan.Step] {
        var plan = plan
        return times.map { plan.step(at: $0) }
    }

    @Test("Each seek is performed once, in order, at its time")
    func order() {
        let (first, second) = (SeekArgument(at: 5, to: 40), SeekArgument(at: 45, to: 3))
        let plan = PlayPlan(seeks: [first, second])
        #expect(
            steps(plan, at: [0, 4.9, 5.1, 40, 46, 3, 5, 46])
                == [.proceed, .proceed, .seek(first), .proceed, .seek(second), .proceed, .proceed, .proceed])
    }

    @Test("If an earlier seek skips the time of a later seek, the later seek is performed immediately")
    func passed() {
        let (first, second) = (SeekArgument(at: 5, to: 40), SeekArgument(at: 10, to: 3))
        #expect(steps(PlayPlan(seeks: [first, second]), at: [5, 40, 3]) == [.seek(first), .seek(second), .proceed])
    }

    @Test("Playback stops at the planned end, even before a later seek")
    func stops() {
        #expect(steps(PlayPlan(until: 10), at: [9.9, 10]) == [.proceed, .stop])
        #expect(steps(PlayPlan(seeks: [SeekArgument(at: 20, to: 30)], until: 10), at: [10]) == [.stop])
    }

    @Test("A seek beyond the planned end does not stop playback while another seek remains")
    func jumpsBeyond() {
        let (first, second) = (SeekArgument(at: 5, to: 40), SeekArgument(at: 45, to: 3))
        #expect(
            steps(PlayPlan(seeks: [first, second], until: 20), at: [5, 40, 45, 3, 20])
                == [.seek(first), .proceed, .seek(second), .proceed, .stop])
        #expect(steps(PlayPlan(seeks: [first], until: 20), at: [5, 40]) == [.seek(first), .stop])
    }

    @Test("The demonstration's seeks leave a missing range and return to fill it", arguments: [1.0, 60, 7200])
    func tour(duration: Double) {
        var plan = PlayPlan.tour(ofSeconds: duration)
        guard case .seek(let first) = plan.step(at: duration * 0.11),
            case .seek(let second) = plan.step(at: duration * 0.9)
        else {
            Issue.record("two seeks were expected")
            return
        }
        #expect(first.at < first.to && second.to <= first.at && second.at > first.to)
        #expect((10...100).contains(plan.rate))
    }
}

import Testing

@testable import SpoolCLI

@Suite("A play follows its plan")
struct PlayPlanTests {
    private func steps(_ plan: PlayPlan, at times: [Double]) -> [PlayPlan.Step] {
        var plan = plan
        return times.map { plan.step(at: $0) }
    }

    @Test("Jumps are made once each, in order, when their time has come")
    func order() {
        let (first, second) = (SeekArgument(at: 5, to: 40), SeekArgument(at: 45, to: 3))
        let plan = PlayPlan(seeks: [first, second])
        #expect(
            steps(plan, at: [0, 4.9, 5.1, 40, 46, 3, 5, 46])
                == [.goOn, .goOn, .jump(first), .goOn, .jump(second), .goOn, .goOn, .goOn])
    }

    @Test("A jump whose time a former one went past is made at once")
    func passed() {
        let (first, second) = (SeekArgument(at: 5, to: 40), SeekArgument(at: 10, to: 3))
        #expect(steps(PlayPlan(seeks: [first, second]), at: [5, 40, 3]) == [.jump(first), .jump(second), .goOn])
    }

    @Test("It stops at its end, also before a jump that was to come later")
    func stops() {
        #expect(steps(PlayPlan(until: 10), at: [9.9, 10]) == [.goOn, .stop])
        #expect(steps(PlayPlan(seeks: [SeekArgument(at: 20, to: 30)], until: 10), at: [10]) == [.stop])
    }

    @Test("A jump beyond the end does not stop it while another jump is to come")
    func jumpsBeyond() {
        let (first, second) = (SeekArgument(at: 5, to: 40), SeekArgument(at: 45, to: 3))
        #expect(
            steps(PlayPlan(seeks: [first, second], until: 20), at: [5, 40, 45, 3, 20])
                == [.jump(first), .goOn, .jump(second), .goOn, .stop])
        #expect(steps(PlayPlan(seeks: [first], until: 20), at: [5, 40]) == [.jump(first), .stop])
    }

    @Test("The demonstration's tour leaves a hole and comes back to fill it", arguments: [1.0, 60, 7200])
    func tour(duration: Double) {
        var plan = PlayPlan.tour(ofSeconds: duration)
        guard case .jump(let first) = plan.step(at: duration * 0.11),
            case .jump(let second) = plan.step(at: duration * 0.9)
        else {
            Issue.record("two jumps were expected")
            return
        }
        #expect(first.at < first.to && second.to <= first.at && second.at > first.to)
        #expect((10...100).contains(plan.rate))
    }
}

import SpoolTesting
import Testing

@testable import SpoolAVFoundation

@Suite("Stall recovery state machine")
struct StallRecoveryStateMachineTests {
    typealias Machine = StallRecovery.StateMachine
    typealias Snapshot = Machine.Snapshot

    private func now(
        _ status: Snapshot.Status, rate: Float, dry: Bool = false, ready: Bool? = nil, atEnd: Bool = false
    ) -> Snapshot {
        Snapshot(status: status, rate: rate, isDry: dry, isReady: ready ?? !dry, isAtEnd: atEnd)
    }

    private func playing(_ rate: Float = 1) -> Machine {
        var machine = Machine()
        #expect(machine.handle(.rateChanged(.app), now(.playing, rate: rate)) == [])
        return machine
    }

    @Test("E77: after a reported stall, playback resumes at the previous rate", arguments: [1, 1.5] as [Float])
    func announced(rate: Float) {
        var machine = playing(rate)
        #expect(machine.handle(.rateChanged(.unknown), now(.paused, rate: 0, dry: true)) == [.wait(rate: rate)])
        #expect(machine.handle(.stallAnnounced, now(.waiting, rate: rate, dry: true)) == [])
        #expect(machine.handle(.bytesReceived, now(.waiting, rate: rate, dry: true)) == [.play(rate: rate)])
        #expect(machine.handle(.tick, now(.playing, rate: rate)) == [.stopWaiting])
        #expect(machine.state == .playing)
    }

    @Test("E77: a stall without a notification is detected from the player's state")
    func silent() {
        var machine = playing(1.5)
        #expect(machine.handle(.tick, now(.paused, rate: 0, dry: true)) == [.wait(rate: 1.5)])
        #expect(machine.handle(.tick, now(.waiting, rate: 1.5, dry: true)) == [])
        #expect(machine.handle(.tick, now(.waiting, rate: 1.5)) == [.play(rate: 1.5)])
    }

    @Test("E77: an offline player plays 30 s of buffered media, waits as long as needed, and resumes")
    func offlineMinute() {
        var machine = playing()
        for _ in 0..<30 { #expect(machine.handle(.tick, now(.playing, rate: 1)) == []) }
        #expect(machine.handle(.rateChanged(.unknown), now(.paused, rate: 0, dry: true)) == [.wait(rate: 1)])
        for second in 1...30 {
            let actions = machine.handle(.tick, now(.waiting, rate: 1, dry: true))
            // A seek in place causes a player that has stopped sending requests to send them again.
            #expect(actions == (second % Machine.seekTicks == 0 ? [.seekInPlace, .play(rate: 1)] : []))
        }
        #expect(machine.handle(.bytesReceived, now(.waiting, rate: 1, dry: true)) == [.play(rate: 1)])
        #expect(machine.handle(.tick, now(.playing, rate: 1)) == [.stopWaiting])
    }

    @Test("E77: a pause during a stall ends the recovery, and does not affect later playback")
    func pausedDuringStall() {
        var machine = playing()
        _ = machine.handle(.rateChanged(.unknown), now(.paused, rate: 0, dry: true))
        #expect(machine.handle(.rateChanged(.app), now(.paused, rate: 0, dry: true)) == [.stopWaiting])
        #expect(machine.handle(.bytesReceived, now(.paused, rate: 0)) == [])
        #expect(machine.handle(.tick, now(.paused, rate: 0)) == [] && machine.state == .paused)
        #expect(machine.handle(.rateChanged(.app), now(.playing, rate: 2)) == [] && machine.rate == 2)
    }

    @Test("E77: after a stall, playback resumes at the rate that was set during the stall")
    func newRate() {
        var machine = playing()
        _ = machine.handle(.rateChanged(.unknown), now(.paused, rate: 0, dry: true))
        _ = machine.handle(.rateChanged(.app), now(.waiting, rate: 1.25, dry: true))
        #expect(machine.handle(.bytesReceived, now(.waiting, rate: 1.25, dry: true)) == [.play(rate: 1.25)])
    }

    @Test(
        "E77: a pause without a stall remains a pause, regardless of its reason",
        arguments: [Machine.Reason.app, .unknown, .system])
    func paused(reason: Machine.Reason) {
        var machine = playing()
        #expect(machine.handle(.rateChanged(reason), now(.paused, rate: 0)) == [])
        #expect(machine.handle(.bytesReceived, now(.paused, rate: 0)) == [])
        #expect(machine.handle(.tick, now(.paused, rate: 0, dry: true)) == [] && machine.state == .paused)
    }

    @Test(
        "E77: a pause by the app is treated as a stall if a stall is reported afterward; an interruption is not")
    func lateAnnouncement() {
        var machine = playing(1.5)
        #expect(machine.handle(.rateChanged(.app), now(.paused, rate: 0)) == [])
        #expect(machine.handle(.stallAnnounced, now(.paused, rate: 0, dry: true)) == [.wait(rate: 1.5)])
        var interrupted = playing()
        _ = interrupted.handle(.rateChanged(.system), now(.paused, rate: 0, dry: true))
        #expect(interrupted.handle(.stallAnnounced, now(.paused, rate: 0, dry: true)) == [])
    }

    @Test("Reaching the end is not a stall, in any order of events")
    func end() {
        var machine = playing()
        #expect(machine.handle(.rateChanged(.unknown), now(.paused, rate: 0, dry: true, atEnd: true)) == [])
        #expect(machine.handle(.ended, now(.paused, rate: 0, dry: true, atEnd: true)) == [])
        #expect(machine.handle(.tick, now(.paused, rate: 0, dry: true, atEnd: true)) == [])
        var first = playing()
        #expect(first.handle(.ended, now(.playing, rate: 1, atEnd: true)) == [])
        #expect(first.state == .paused)
    }

    @Test("If a new item replaces a stalled item, the wait ends, and the new item is expected to play")
    func items() {
        var machine = playing(1.5)
        _ = machine.handle(.rateChanged(.unknown), now(.paused, rate: 0, dry: true))
        #expect(machine.handle(.itemChanged, now(.paused, rate: 0)) == [.stopWaiting])
        #expect(machine.state == .playing && machine.rate == 1.5)
        #expect(machine.cancel() == [] && machine.state == .paused)
    }

    @Test("After random inputs, playback that is paused does not resume automatically", arguments: 0..<50)
    func random(seed: UInt64) {
        var random = SplitMix(seed)
        var machine = playing()
        let inputs: [Machine.Input] = [
            .rateChanged(.unknown), .stallAnnounced, .bytesReceived, .tick, .tick, .ended,
        ]
        for _ in 0..<30 {
            let dry = random.next() & 1 == 0
            let statuses: [(Snapshot.Status, Float)] = [(.paused, 0), (.waiting, 1), (.playing, 1)]
            let (status, rate) = statuses[Int(random.next() % 3)]
            _ = machine.handle(inputs[Int(random.next() % UInt64(inputs.count))], now(status, rate: rate, dry: dry))
        }
        _ = machine.handle(.rateChanged(.system), now(.paused, rate: 0, dry: true))
        for input in inputs {
            #expect(machine.handle(input, now(.paused, rate: 0, dry: true)) == [])
        }
    }
}

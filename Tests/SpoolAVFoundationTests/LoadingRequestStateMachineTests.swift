import Testing

@testable import SpoolAVFoundation

@Suite("Loading request state machine")
struct LoadingRequestStateMachineTests {
    typealias Machine = LoadingRequest.StateMachine
    typealias RequestedData = LoadingRequest.RequestedData

    private static func data(
        _ offset: Int64, _ length: Int, current: Int64? = nil, toEnd: Bool = false
    ) -> (requestedOffset: Int64, requestedLength: Int, currentOffset: Int64, toEnd: Bool) {
        (offset, length, current ?? offset, toEnd)
    }

    // MARK: The requested data

    @Test(
        "D42: the two probe bytes count as requested data only if the loader delivers them",
        arguments: [false, true])
    func probe(isDelivered: Bool) {
        func start(_ information: Bool, _ length: Int, toEnd: Bool = false) -> Int64? {
            RequestedData(
                information: information, data: Self.data(0, length, toEnd: toEnd), deliversProbe: isDelivered
            ).start
        }
        #expect(start(true, 2) == (isDelivered ? 0 : nil))
        #expect(RequestedData(information: true, data: nil, deliversProbe: isDelivered).start == nil)
        #expect(start(false, 2) == 0 && start(true, 3) == 0 && start(true, 2, toEnd: true) == 0)
    }

    @Test("D43: the length of a request to the end is ignored, and sums of offsets and lengths do not overflow")
    func ends() {
        #expect(RequestedData(information: false, data: Self.data(5, 10)).end == 15)
        #expect(RequestedData(information: false, data: Self.data(5, 10, toEnd: true)).end == nil)
        #expect(RequestedData(information: false, data: Self.data(5, .max)).end == nil)
        #expect(RequestedData(information: false, data: Self.data(.max, .max)).end == nil)
        #expect(RequestedData(information: false, data: Self.data(0, .max)).end == Int64.max)
        #expect(RequestedData(information: false, data: Self.data(5, -1)).end == 5)
    }

    @Test("D43: delivery starts at the current offset, or at the requested offset if the current one is 0")
    func starts() {
        #expect(RequestedData(information: false, data: Self.data(100, 50, current: 120)).start == 120)
        #expect(RequestedData(information: false, data: Self.data(100, 50, current: 0)).start == 100)
        #expect(RequestedData(information: false, data: Self.data(100, 50, current: 120)).end == 150)
    }

    // MARK: Single transitions

    private func machine(
        information: Bool = false, _ offset: Int64, _ length: Int, toEnd: Bool = false, deliversProbe: Bool = true
    ) -> Machine {
        Machine(
            RequestedData(
                information: information, data: Self.data(offset, length, toEnd: toEnd), deliversProbe: deliversProbe))
    }

    @Test("The content information is provided first, then the bytes up to the end, and then the request finishes")
    func informationThenBytes() {
        var machine = machine(information: true, 0, 10, toEnd: true)
        #expect(machine.informationLoaded(length: 12) == [.fillInformation, .read(token: 1, from: 0, to: 12)])
        #expect(machine.received(offset: 0, count: 5, token: 1) == [.respond(0..<5)])
        #expect(machine.received(offset: 5, count: 7, token: 1) == [.respond(0..<7), .stopReading, .finish])
        #expect(machine.readEnded(token: 1) == [] && machine.cancel() == [])
    }

    @Test("D42: a probe finishes with the content information, with or without its two bytes")
    func probeFinishes() {
        var machine = machine(information: true, 0, 2)
        #expect(machine.informationLoaded(length: 12) == [.fillInformation, .read(token: 1, from: 0, to: 2)])
        #expect(machine.received(offset: 0, count: 12, token: 1) == [.respond(0..<2), .stopReading, .finish])
        machine = self.machine(information: true, 0, 2, deliversProbe: false)
        #expect(machine.informationLoaded(length: 12) == [.fillInformation, .finish])
    }

    @Test("D45: after cancellation, inputs do not cause actions")
    func cancelled() {
        var machine = machine(0, 10)
        _ = machine.informationLoaded(length: 100)
        #expect(machine.cancel() == [.stopReading])
        #expect(machine.received(offset: 0, count: 5, token: 1) == [])
        #expect(machine.readEnded(token: 1) == [] && machine.readFailed(token: 1) == [] && machine.cancel() == [])
    }

    @Test("If a resource ends before its reported length, the request fails instead of finishing early")
    func shortEnd() {
        var machine = machine(0, 10)
        _ = machine.informationLoaded(length: 100)
        _ = machine.received(offset: 0, count: 5, token: 1)
        #expect(machine.readEnded(token: 1) == [.failIncomplete])
    }

    @Test("If the length is unknown, the end of the received bytes is the end of the resource")
    func unknownLength() {
        var machine = machine(0, .max, toEnd: true)
        #expect(machine.informationLoaded(length: nil) == [.read(token: 1, from: 0, to: nil)])
        _ = machine.received(offset: 0, count: 5, token: 1)
        #expect(machine.readEnded(token: 1) == [.finish])
    }

    @Test("A request that extends past the end is clipped, and a request that starts at the end finishes without bytes")
    func clipped() {
        var over = machine(90, 20)
        #expect(over.informationLoaded(length: 100) == [.read(token: 1, from: 90, to: 100)])
        var beyond = machine(100, 20)
        #expect(beyond.informationLoaded(length: 100) == [.finish])
    }

    @Test("D47: a suspended request resumes where it stopped, and late bytes from the previous reader are ignored")
    func restAndGoOn() {
        var machine = machine(0, 10)
        _ = machine.informationLoaded(length: 100)
        _ = machine.received(offset: 0, count: 4, token: 1)
        #expect(machine.suspend() == [.stopReading])
        #expect(machine.received(offset: 4, count: 4, token: 1) == [] && machine.readEnded(token: 1) == [])
        #expect(machine.resume() == [.read(token: 2, from: 4, to: 10)])
        #expect(machine.received(offset: 4, count: 6, token: 1) == [])
        #expect(machine.received(offset: 4, count: 6, token: 2) == [.respond(0..<6), .stopReading, .finish])
    }

    @Test("Bytes after a missing range are never delivered, and delivered bytes are not delivered again")
    func order() {
        var machine = machine(0, 10)
        _ = machine.informationLoaded(length: 100)
        _ = machine.received(offset: 0, count: 4, token: 1)
        #expect(machine.received(offset: 2, count: 4, token: 1) == [.respond(2..<4)])
        #expect(machine.received(offset: 7, count: 1, token: 1) == [.stopReading, .failIncomplete])
    }
}

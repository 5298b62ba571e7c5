import Testing

@testable import SpoolAVFoundation

/// Tests that pass inputs in all orders, and check the actions with a model that contains only the guarantees.
@Suite("Loading request state machine, with inputs in all orders")
struct LoadingRequestExhaustiveTests {
    typealias Machine = LoadingRequest.StateMachine

    enum Input: Hashable {
        case informationLoaded(Int64?)
        case informationFailed
        case mustRedirect
        /// A chunk of `count` bytes that starts `back` bytes before the cursor.
        case received(back: Int64, count: Int, isStale: Bool)
        case readEnded(isStale: Bool)
        case readFailed(isStale: Bool)
        case readPastEnd(isStale: Bool)
        case networkLost(isStale: Bool)
        case retry(isStale: Bool)
        case cancel
        case suspend
        case resume

        static let all: [Input] =
            ofOneRead + [
                .networkLost(isStale: false), .networkLost(isStale: true), .retry(isStale: false),
                .retry(isStale: true),
            ]
        private static let ofOneRead: [Input] =
            [.informationLoaded(nil), .informationLoaded(3), .informationLoaded(6), .informationFailed, .mustRedirect]
            + [false, true].flatMap { stale in
                [(0, 0), (0, 1), (0, 2), (0, 9), (1, 2), (2, 1), (-1, 1)].map {
                    Input.received(back: $0.0, count: $0.1, isStale: stale)
                } + [.readEnded(isStale: stale), .readFailed(isStale: stale), .readPastEnd(isStale: stale)]
            } + [.cancel, .suspend, .resume]
    }

    /// The events of one request that the player and the cache have observed.
    struct Watch: Hashable {
        var isFilled = false
        var isOver = false
        var isResting = false
        var isInformed = false
        var cursor: Int64
        var token = 0
        var isReading = false
        /// Whether the network is lost, and a reader will be opened for the request later.
        var isLost = false
    }

    struct Node: Hashable {
        var machine: Machine
        var watch: Watch
    }

    static let requests: [LoadingRequest.RequestedData] = [
        .init(information: true, data: nil),
        .init(information: true, data: (0, 2, 0, false)),
        .init(information: true, data: (0, .max, 0, true)),
        .init(information: true, data: (0, 4, 0, false)),
        .init(information: false, data: (0, .max, 0, true)),
        .init(information: false, data: (1, 4, 0, false)),
        .init(information: false, data: (2, 2, 3, false)),
        .init(information: false, data: (5, 4, 5, false)),
    ]

    @Test(
        "D45: for any order of inputs, nothing follows the end, information precedes bytes, and no byte is repeated",
        arguments: requests)
    func everyOrder(requested: LoadingRequest.RequestedData) {
        var seen: Set<Node> = []
        var frontier = [Node(machine: Machine(requested), watch: Watch(cursor: requested.start ?? 0))]
        var ends: Set<Machine.Action> = []
        for _ in 0..<8 {
            var next: [Node] = []
            for node in frontier {
                for input in Input.all {
                    var node = node
                    step(input, &node, requested, &ends)
                    if seen.insert(node).inserted { next.append(node) }
                }
            }
            frontier = next
        }
        #expect(seen.count > 3)
        // Checks that the machine reaches its end states. Otherwise, a machine that never acts would pass the test.
        #expect(ends.isSuperset(of: [.finish, .fail, .redirect]))
        if requested.start != nil { #expect(ends.contains(.failIncomplete)) }
    }

    private func step(
        _ input: Input, _ node: inout Node, _ requested: LoadingRequest.RequestedData, _ ends: inout Set<Machine.Action>
    ) {
        let before = node
        let wasOver = node.watch.isOver
        var chunk = 0..<Int64(0)
        let token = node.watch.token
        let actions: [Machine.Action]
        switch input {
        case .informationLoaded(let length):
            actions = node.machine.informationLoaded(length: length)
            node.watch.isInformed = true
        case .informationFailed: actions = node.machine.informationFailed()
        case .mustRedirect: actions = node.machine.mustRedirect()
        case .received(let back, let count, let isStale):
            chunk = node.watch.cursor - back..<node.watch.cursor - back + Int64(count)
            actions = node.machine.received(offset: chunk.lowerBound, count: count, token: isStale ? token - 1 : token)
        case .readEnded(let isStale):
            actions = node.machine.readEnded(token: isStale ? token - 1 : token)
            if !isStale { node.watch.isReading = false }
        case .readFailed(let isStale):
            actions = node.machine.readFailed(token: isStale ? token - 1 : token)
            if !isStale { node.watch.isReading = false }
        case .readPastEnd(let isStale):
            actions = node.machine.readPastEnd(token: isStale ? token - 1 : token)
            if !isStale { node.watch.isReading = false }
        case .networkLost(let isStale):
            actions = node.machine.readFailed(token: isStale ? token - 1 : token, isLossOfNetwork: true)
            if !isStale { node.watch.isReading = false }
        case .retry(let isStale): actions = node.machine.retry(token: isStale ? token - 1 : token)
        case .cancel: actions = node.machine.cancel()
        case .suspend:
            actions = node.machine.suspend()
            node.watch.isResting = true
        case .resume:
            actions = node.machine.resume()
            node.watch.isResting = false
        }
        let note = Comment("\(input) in \(before) gave \(actions)")
        if wasOver { #expect(actions.isEmpty, note) }
        for action in actions { check(action, chunk, requested, &node.watch, note, &ends) }
        if input == .cancel { node.watch.isOver = true }
        #expect(node.machine.isOver == node.watch.isOver, note)
        #expect(!node.watch.isOver || !node.watch.isReading, "a reader is left behind: \(note)")
        #expect(!node.watch.isResting || !node.watch.isReading, note)
        // If a request has content information and is neither suspended nor finished, a reader is open for it or will
        // be opened later. Therefore, a request never waits forever.
        if node.machine.state == .responding, !node.watch.isResting {
            #expect(node.watch.isReading || node.watch.isLost, note)
        }
    }

    private func check(
        _ action: Machine.Action, _ chunk: Range<Int64>, _ requested: LoadingRequest.RequestedData,
        _ watch: inout Watch,
        _ note: Comment, _ ends: inout Set<Machine.Action>
    ) {
        switch action {
        case .fillInformation:
            #expect(requested.information && !watch.isFilled && !watch.isOver, note)
            watch.isFilled = true
        case .read(let token, let from, _):
            #expect(!watch.isReading && !watch.isOver && !watch.isResting, note)
            #expect(token > watch.token && from == watch.cursor, note)
            watch.token = token
            watch.isReading = true
            watch.isLost = false
        case .readLater(let token):
            #expect(token == watch.token && !watch.isReading && !watch.isOver && !watch.isResting, note)
            watch.isLost = true
        case .stopReading:
            #expect(watch.isReading, note)
            watch.isReading = false
        case .respond(let bytes):
            #expect(watch.isReading && !watch.isOver && !watch.isResting && requested.start != nil, note)
            #expect(watch.isFilled || !requested.information, note)
            #expect(!bytes.isEmpty && chunk.lowerBound + Int64(bytes.lowerBound) == watch.cursor, note)
            watch.cursor += Int64(bytes.count)
            #expect(watch.cursor <= min(chunk.upperBound, requested.end ?? .max), note)
        case .finish, .fail, .failIncomplete, .redirect:
            #expect(!watch.isOver, note)
            #expect(action != .finish || watch.isFilled || !requested.information, note)
            watch.isOver = true
            ends.insert(action)
        }
    }
}

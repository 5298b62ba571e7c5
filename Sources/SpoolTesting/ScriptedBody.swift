import Foundation
import Spool
import Synchronization

/// A scripted body: ends its flow when it is released, before or during iteration.
struct ScriptedBody: AsyncSequence, Sendable {
    typealias Element = [UInt8]

    private final class Owner: Sendable {
        let flow: ScriptedFlow
        let isTakenOver = Mutex(false)
        init(_ flow: ScriptedFlow) { self.flow = flow }
        deinit { if !isTakenOver.withLock({ $0 }) { flow.close() } }
    }

    private let owner: Owner

    init(_ flow: ScriptedFlow) { owner = Owner(flow) }

    func makeAsyncIterator() -> Iterator {
        owner.isTakenOver.withLock { $0 = true }
        return Iterator(owner.flow)
    }

    final class Iterator: AsyncIteratorProtocol {
        private let flow: ScriptedFlow
        init(_ flow: ScriptedFlow) { self.flow = flow }
        deinit { flow.close() }

        func next() async throws -> [UInt8]? { try await flow.next() }
    }
}

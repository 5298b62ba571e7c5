import Testing

@testable import Spool

@Suite("Open connections to an origin", .timeLimit(.minutes(10)))
struct OpenConnectionsTests {
    /// Returns open connections whose origin has rejected a request while `count` connections were open, and accepted
    /// it after one of them had been closed.
    private func limited(to count: Int) -> OpenConnections {
        let connections = OpenConnections(limit: nil)
        for _ in 0..<count { #expect(connections.open(as: .playback, isAlone: false, at: .zero)) }
        #expect(connections.recordAcceptance(afterRejectionWith: count, at: .zero) == count)
        return connections
    }

    @Test("A learned limit expires after a day")
    func expiration() {
        let connections = limited(to: 2)
        #expect(connections.limit(at: .seconds(86_399)) == 2)
        #expect(!connections.open(as: .playback, isAlone: false, at: .seconds(86_399)))
        #expect(connections.limit(at: .seconds(86_400)) == nil)
        #expect(connections.open(as: .playback, isAlone: false, at: .seconds(86_400)))
    }

    @Test("A limit that an accepted request exceeded increases, and a further rejection decreases it")
    func increase() {
        let connections = limited(to: 1)
        connections.openBeyondLimit()
        connections.openBeyondLimit()
        connections.recordAcceptance(at: .zero)
        #expect(connections.limit(at: .zero) == 3)
        connections.close()
        #expect(connections.recordAcceptance(afterRejectionWith: 2, at: .zero) == 2)
        #expect(connections.limit(at: .zero) == 2)
    }

    @Test("A rejection has no effect if the request is accepted while the same number of connections is open")
    func otherReason() {
        let connections = OpenConnections(limit: nil)
        for _ in 0..<3 { #expect(connections.open(as: .playback, isAlone: false, at: .zero)) }
        #expect(connections.recordAcceptance(afterRejectionWith: 2, at: .zero) == nil)
        #expect(connections.recordAcceptance(afterRejectionWith: 0, at: .zero) == nil)
        #expect(connections.limit(at: .zero) == nil)
    }

    @Test("A configured limit neither increases nor expires")
    func configured() {
        let connections = OpenConnections(limit: 1)
        #expect(connections.open(as: .preload, isAlone: false, at: .zero))
        connections.openBeyondLimit()
        connections.recordAcceptance(at: .zero)
        #expect(connections.limit(at: .seconds(1_000_000)) == 1)
    }

    @Test("Preloads get no connection while a player waits for one")
    func players() {
        let connections = limited(to: 1)
        connections.recordWait(isWaiting: true)
        connections.close()
        #expect(!connections.open(as: .preload, isAlone: false, at: .zero))
        #expect(connections.open(as: .playback, isAlone: false, at: .zero))
        connections.recordWait(isWaiting: false)
        connections.close()
        #expect(connections.open(as: .preload, isAlone: false, at: .zero))
    }
}

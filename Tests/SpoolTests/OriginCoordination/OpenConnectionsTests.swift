import Testing

@testable import Spool

@Suite("Open connections to an origin", .timeLimit(.minutes(10)))
struct OpenConnectionsTests {
    /// Returns open connections whose origin has accepted `count` connections, and has rejected another one until one
    /// of them was closed.
    private func limited(to count: Int) -> OpenConnections {
        let connections = OpenConnections(limit: nil)
        for _ in 0..<count { accept(connections) }
        connections.close(isAccepted: true, at: .zero)
        #expect(connections.open(as: .playback, at: .zero))
        #expect(connections.recordAcceptance(isFirst: true, afterRejectionWith: count, at: .zero) == count)
        return connections
    }

    /// Opens a connection on which the origin accepts a request.
    private func accept(_ connections: OpenConnections) {
        connections.openBeyondLimit()
        _ = connections.recordAcceptance(isFirst: true, at: .zero)
    }

    @Test("A learned limit expires after a day")
    func expiration() {
        let connections = limited(to: 2)
        #expect(connections.limit(at: .seconds(86_399)) == 2)
        #expect(!connections.open(as: .playback, at: .seconds(86_399)))
        #expect(connections.limit(at: .seconds(86_400)) == nil)
        #expect(connections.open(as: .playback, at: .seconds(86_400)))
    }

    @Test("A learned limit increases if a request beyond it is accepted, and decreases after another rejection")
    func increase() {
        let connections = limited(to: 1)
        accept(connections)
        accept(connections)
        #expect(connections.limit(at: .zero) == 3)
        connections.close(isAccepted: true, at: .zero)
        #expect(connections.recordAcceptance(isFirst: false, afterRejectionWith: 2, at: .zero) == 2)
        #expect(connections.limit(at: .zero) == 2)
    }

    @Test("Connections whose requests were rejected too do not count toward a learned limit")
    func rejectedTogether() {
        let connections = OpenConnections(limit: nil)
        accept(connections)
        for _ in 0..<3 { connections.openBeyondLimit() }
        for _ in 0..<2 { connections.close(isAccepted: false, at: .zero) }
        connections.close(isAccepted: true, at: .zero)
        #expect(connections.recordAcceptance(isFirst: true, afterRejectionWith: 3, at: .zero) == 1)
    }

    @Test("Connections that were accepted more than a minute earlier do not count toward a learned limit")
    func earlierPeak() {
        let connections = OpenConnections(limit: nil)
        for _ in 0..<5 { accept(connections) }
        for _ in 0..<5 { connections.close(isAccepted: true, at: .zero) }
        for _ in 0..<3 { connections.openBeyondLimit() }
        for _ in 0..<2 { connections.close(isAccepted: false, at: .zero) }
        #expect(connections.recordAcceptance(isFirst: true, afterRejectionWith: 3, at: .seconds(61)) == 1)
    }

    @Test("A rejection has no effect if the request is accepted while the same number of connections is open")
    func otherReason() {
        let connections = OpenConnections(limit: nil)
        for _ in 0..<3 { #expect(connections.open(as: .playback, at: .zero)) }
        #expect(connections.recordAcceptance(isFirst: true, afterRejectionWith: 2, at: .zero) == nil)
        #expect(connections.recordAcceptance(isFirst: true, afterRejectionWith: 0, at: .zero) == nil)
        #expect(connections.limit(at: .zero) == nil)
    }

    @Test("A configured limit neither increases nor expires")
    func configured() {
        let connections = OpenConnections(limit: 1)
        #expect(connections.open(as: .preload, at: .zero))
        accept(connections)
        #expect(connections.limit(at: .seconds(1_000_000)) == 1)
    }

    @Test("Waiting requests get connections in the order in which they started to wait, players before preloads")
    func order() {
        let connections = limited(to: 1)
        let tickets = [Priority.preload, .playback, .playback].map { connections.beginWaiting(as: $0, maximum: nil) }
        connections.close(isAccepted: false, at: .zero)
        #expect(!connections.open(as: .playback, at: .zero))
        for index in [1, 2, 0] {
            for other in [0, 1, 2] where other != index { #expect(!connections.open(tickets[other], at: .zero)) }
            #expect(connections.open(tickets[index], at: .zero))
            connections.endWaiting(tickets[index])
            connections.close(isAccepted: false, at: .zero)
        }
        #expect(connections.open(as: .preload, at: .zero))
    }

    @Test("A request that waits until no other connection is open delays no other request")
    func alone() {
        let connections = OpenConnections(limit: 2)
        #expect(connections.open(as: .playback, at: .zero))
        let alone = connections.beginWaiting(as: .playback, maximum: 1)
        #expect(!connections.open(alone, at: .zero))
        #expect(connections.open(as: .playback, at: .zero))
        connections.close(isAccepted: false, at: .zero)
        connections.close(isAccepted: false, at: .zero)
        #expect(!connections.open(as: .playback, at: .zero))
        #expect(connections.open(alone, at: .zero))
    }

    @Test("A rejection has a remedy only if the number of connections may be its reason")
    func remedies() {
        let connections = OpenConnections(limit: nil)
        func open(_ count: Int) { for _ in 0..<count { connections.openBeyondLimit() } }
        open(1)
        #expect(connections.remedy(at: .zero) == nil)
        open(1)
        #expect(connections.remedy(at: .zero) == .openAlone)
        connections.close(isAccepted: false, at: .seconds(1))
        #expect(connections.remedy(at: .seconds(2)) == nil)
        open(16)
        #expect(connections.remedy(at: .seconds(3)) == .openAlone)
        open(1)
        #expect(connections.remedy(at: .seconds(3)) == nil)
    }

    @Test("After a rejection of the only connection, rejections have no remedy for two minutes")
    func otherReasons() {
        let connections = OpenConnections(limit: nil)
        connections.openBeyondLimit()
        connections.recordRejection(at: .seconds(10))
        connections.openBeyondLimit()
        #expect(connections.remedy(at: .seconds(129)) == nil)
        #expect(connections.remedy(at: .seconds(130)) == .openAlone)
    }

    @Test("With a known limit, a rejected request waits if the limit is exceeded, or if a connection was just closed")
    func remediesWithLimit() {
        let connections = OpenConnections(limit: 2)
        for _ in 0..<3 { connections.openBeyondLimit() }
        #expect(connections.remedy(at: .seconds(5)) == .openWithinLimit)
        connections.close(isAccepted: false, at: .seconds(1))
        #expect(connections.remedy(at: .seconds(5)) == nil)
        // The origin may not have noticed yet that the connection was closed.
        #expect(connections.remedy(at: .seconds(2)) == .wait)
    }
}

import Testing

@testable import Spool

@Suite("Open connections to an origin", .timeLimit(.minutes(10)))
struct OpenConnectionsTests {
    /// Returns the open connections to an origin that accepts `count` connections, after this limit was learned.
    private func limited(to count: Int) -> OpenConnections {
        let connections = OpenConnections(limit: nil)
        for _ in 0..<count { accept(connections) }
        connections.openBeyondLimit(at: .zero)
        #expect(connections.remedy(at: .zero) == .openFewer(than: count + 1))
        connections.close(.ended, at: .zero)
        #expect(connections.recordAcceptance(afterRejectionOf: count + 1, at: .zero) == count)
        return connections
    }

    /// Opens a connection on which the origin accepts a request.
    private func accept(_ connections: OpenConnections) {
        connections.openBeyondLimit(at: .zero)
        _ = connections.recordAcceptance(at: .zero)
    }

    /// Returns the open connections to an origin that has accepted one connection and has just rejected another.
    private func rejectedSecond() -> OpenConnections {
        let connections = OpenConnections(limit: nil)
        accept(connections)
        connections.openBeyondLimit(at: .zero)
        #expect(connections.remedy(at: .zero) == .openFewer(than: 2))
        return connections
    }

    @Test("A learned limit expires after a day")
    func expiration() {
        let connections = limited(to: 2)
        #expect(connections.limit(at: .seconds(86_399)) == 2)
        #expect(connections.limit(at: .seconds(86_400)) == nil)
        for _ in 0..<3 { #expect(connections.open(as: .playback, at: .seconds(86_400))) }
    }

    @Test("A learned limit is exceeded by one connection each minute, and increases if that connection is accepted")
    func probes() {
        let connections = limited(to: 1)
        #expect(!connections.open(as: .playback, at: .seconds(59)))
        #expect(connections.open(as: .playback, at: .seconds(60)))
        connections.close(.notAccepted, at: .seconds(61))
        #expect(!connections.open(as: .playback, at: .seconds(119)))
        #expect(connections.open(as: .playback, at: .seconds(120)))
        _ = connections.recordAcceptance(at: .seconds(121))
        #expect(connections.limit(at: .seconds(121)) == 2)
        #expect(connections.open(as: .playback, at: .seconds(122)))
        #expect(!connections.open(as: .playback, at: .seconds(123)))
    }

    @Test("A learned limit increases if a request beyond it is accepted, and decreases after another rejection")
    func increase() {
        let connections = limited(to: 1)
        accept(connections)
        accept(connections)
        #expect(connections.limit(at: .zero) == 3)
        for _ in 0..<2 { connections.close(.ended, at: .seconds(61)) }
        connections.openBeyondLimit(at: .seconds(65))
        #expect(connections.remedy(at: .seconds(65)) == .openFewer(than: 2))
        connections.close(.ended, at: .seconds(66))
        #expect(connections.recordAcceptance(afterRejectionOf: 2, at: .seconds(66)) == 1)
        #expect(connections.limit(at: .seconds(66)) == 1)
    }

    @Test("E513: if all requests are rejected together, no limit is learned")
    func rejectedTogether() {
        let connections = OpenConnections(limit: nil)
        for _ in 0..<6 { connections.openBeyondLimit(at: .zero) }
        #expect(connections.remedy(at: .zero) == nil)
    }

    @Test("E513: if the origin has accepted more connections within a minute, a rejection has another reason")
    func earlierPeak() {
        let connections = OpenConnections(limit: nil)
        for _ in 0..<5 { accept(connections) }
        for _ in 0..<3 { connections.close(.ended, at: .zero) }
        connections.openBeyondLimit(at: .zero)
        #expect(connections.remedy(at: .seconds(60)) == nil)
        #expect(connections.remedy(at: .seconds(61)) == .openFewer(than: 3))
    }

    @Test("No limit is learned from a request that is accepted while the same number of connections is open")
    func sameNumber() {
        let connections = OpenConnections(limit: nil)
        for _ in 0..<2 { accept(connections) }
        connections.openBeyondLimit(at: .zero)
        #expect(connections.recordAcceptance(afterRejectionOf: 3, at: .zero) == nil)
        #expect(connections.limit(at: .zero) == nil)
    }

    @Test("E514: after the origin needed time to notice a closed connection, later requests wait for that time")
    func closingDelay() {
        let connections = limited(to: 1)
        connections.close(.cancelled, at: .seconds(10))
        #expect(connections.open(as: .playback, at: .seconds(10)))
        #expect(connections.remedy(at: .seconds(10)) == .wait)
        _ = connections.recordAcceptance(hasWaited: true, at: .milliseconds(10_700))
        connections.close(.cancelled, at: .seconds(20))
        #expect(!connections.open(as: .playback, at: .milliseconds(20_699)))
        #expect(connections.open(as: .playback, at: .milliseconds(20_700)))
        _ = connections.recordAcceptance(at: .seconds(21))
        connections.close(.ended, at: .seconds(30))
        #expect(connections.open(as: .playback, at: .seconds(30)))
        // The time becomes shorter while requests are accepted immediately.
        _ = connections.recordAcceptance(at: .seconds(31))
        connections.close(.cancelled, at: .seconds(40))
        #expect(connections.open(as: .playback, at: .milliseconds(40_600)))
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
        connections.close(.notAccepted, at: .zero)
        #expect(!connections.open(as: .playback, at: .zero))
        for index in [1, 2, 0] {
            for other in [0, 1, 2] where other != index { #expect(!connections.open(tickets[other], at: .zero)) }
            #expect(connections.open(tickets[index], at: .zero))
            connections.endWaiting(tickets[index])
            connections.close(.notAccepted, at: .zero)
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
        connections.close(.notAccepted, at: .zero)
        connections.close(.notAccepted, at: .zero)
        #expect(!connections.open(as: .playback, at: .zero))
        #expect(connections.open(alone, at: .zero))
    }

    @Test("A rejection has a remedy only if the number of connections may be its reason")
    func remedies() {
        func remedy(accepted: Int) -> OpenConnections.Remedy? {
            let connections = OpenConnections(limit: nil)
            for _ in 0..<accepted { accept(connections) }
            connections.openBeyondLimit(at: .zero)
            return connections.remedy(at: .zero)
        }
        #expect(remedy(accepted: 0) == nil)
        #expect(remedy(accepted: 1) == .openFewer(than: 2))
        #expect(remedy(accepted: 16) == .openFewer(than: 17))
        #expect(remedy(accepted: 17) == nil)
    }

    @Test("E513: if a request is rejected again although fewer connections were open, rejections have another reason")
    func otherReasons() {
        let connections = rejectedSecond()
        connections.recordOtherReason(at: .seconds(10))
        #expect(connections.remedy(at: .seconds(129)) == nil)
        #expect(connections.remedy(at: .seconds(130)) == .openFewer(than: 2))
    }

    @Test("With a known limit, a rejected request waits if the limit is exceeded, or if a connection was just closed")
    func remediesWithLimit() {
        let connections = OpenConnections(limit: 2)
        for _ in 0..<2 { accept(connections) }
        connections.openBeyondLimit(at: .zero)
        #expect(connections.remedy(at: .seconds(5)) == .openWithinLimit)
        connections.close(.cancelled, at: .seconds(4))
        #expect(connections.remedy(at: .seconds(7)) == nil)
        // The origin may not have noticed yet that the connection was closed.
        #expect(connections.remedy(at: .seconds(5)) == .wait)
    }

    @Test("If no other connection is closed in time, a second rejection is not attributed to their number")
    func noneClosed() {
        let connections = rejectedSecond()
        #expect(connections.remedy(isRepeated: true, at: .seconds(2)) == nil)
        #expect(connections.remedy(at: .seconds(2)) == .openWithinLimit)
    }

    @Test("While a rejected request is sent again, the number of accepted connections is assumed to be the limit")
    func assumedLimit() {
        let connections = rejectedSecond()
        connections.close(.cancelled, at: .seconds(1))
        connections.close(.notAccepted, at: .seconds(1))
        #expect(!connections.hasLimit(at: .seconds(1)))
        #expect(connections.open(as: .playback, at: .seconds(1)))
        // The player whose response was cancelled waits.
        #expect(!connections.open(as: .playback, at: .seconds(1)))
        #expect(connections.remedy(isRepeated: true, at: .seconds(1)) == .wait)
        connections.recordOtherReason(at: .seconds(2))
        #expect(connections.open(as: .playback, at: .seconds(2)))
    }
}

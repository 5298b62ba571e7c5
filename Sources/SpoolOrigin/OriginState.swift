import Foundation
import HTTPTypes
import Synchronization

/// An origin without its sockets: the resources, the log, the clock and the stalled responses.
///
/// All connections of an ``OriginServer`` share one state. An in-memory transport can also use it.
package final class OriginState: Sendable {
    private struct State {
        var resources: [String: OriginResource]
        var held: [Int: (path: String, resume: @Sendable () -> Void)] = [:]
        /// The number of the first request after the last release, by path. The key `nil` is for releases of all paths.
        var firstUnreleased: [String?: Int] = [:]

        func isReleased(_ number: Int, path: String) -> Bool {
            number < max(firstUnreleased[nil] ?? 0, firstUnreleased[path] ?? 0)
        }
    }

    package let log = OriginLog()
    package let clock: any Clock<Duration>
    private let state: Mutex<State>

    package init(resources: [String: OriginResource], clock: any Clock<Duration>) {
        self.clock = clock
        state = Mutex(State(resources: resources))
    }

    package func update(_ path: String, _ mutate: (inout OriginResource?) -> Void) {
        state.withLock { mutate(&$0.resources[path]) }
    }

    /// Returns the response to a recorded request.
    package func response(_ exchange: OriginExchange, keepsAlive: Bool) -> OriginResponse {
        let request = OriginRequest(
            method: exchange.method, query: exchange.query, headerFields: exchange.headerFields, keepsAlive: keepsAlive,
            index: exchange.index)
        let resource = state.withLock { $0.resources[exchange.path] }
        return OriginResponse(to: request, from: resource, now: Date())
    }

    /// Stalls a response until its path is released. If the path has been released since the request was received, the
    /// response resumes immediately.
    package func hold(_ number: Int, path: String, resume: @escaping @Sendable () -> Void) {
        let isHeld = state.withLock { state in
            if state.isReleased(number, path: path) { return false }
            state.held[number] = (path, resume)
            return true
        }
        guard isHeld else { return resume() }
        log.update(number) { $0.isStalled = true }
    }

    /// Resumes the stalled responses for one path or for all paths, and prevents responses in progress from stalling
    /// later.
    package func release(_ path: String?) {
        let next = log.nextNumber
        let released = state.withLock { state in
            state.firstUnreleased[path] = next
            let released = state.held.filter { path == nil || $0.value.path == path }
            for number in released.keys { state.held[number] = nil }
            return released
        }
        for (number, held) in released.sorted(by: { $0.key < $1.key }) {
            log.update(number) { $0.isStalled = false }
            held.resume()
        }
    }

    /// Discards a stalled response whose connection was closed.
    package func drop(_ number: Int) { state.withLock { $0.held[number] = nil } }
}

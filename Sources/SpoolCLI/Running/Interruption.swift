import Dispatch
import Foundation
import Synchronization

/// Ends a command well when it is told to stop: what runs is cancelled, and the cache closed, before the process exits.
enum Interruption {
    /// Runs `body`; `SIGINT` and `SIGTERM` cancel it. A second signal ends the process at once.
    ///
    /// - Returns: The result of `body`; after a signal 130 (`SIGINT`) or 1 (`SIGTERM`), unless all was done by then.
    static func exitCode(of body: @escaping @Sendable () async -> Int32) async -> Int32 {
        let received = Mutex<Int32?>(nil)
        let task = Task { await body() }
        let sources = [SIGINT, SIGTERM].map { number in
            // The default would end the process before the source hears of it.
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                let isFirst = received.withLock { former in
                    defer { former = former ?? number }
                    return former == nil
                }
                guard isFirst else { _exit(code(for: number)) }
                task.cancel()
            }
            source.resume()
            return source
        }
        let result = await task.value
        sources.forEach { $0.cancel() }
        guard result != 0, let number = received.withLock({ $0 }) else { return result }
        return code(for: number)
    }

    private static func code(for number: Int32) -> Int32 { number == SIGINT ? 130 : 1 }
}

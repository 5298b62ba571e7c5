import Dispatch
import Foundation
import Synchronization

/// Ends a command well when it is told to stop: what runs is cancelled, and the cache closed, before the process exits.
enum Interruption {
    /// How long the end may take, in seconds: beyond it something outside holds it up, such as a pipe that nobody reads.
    private static let patience = Mutex(5.0)

    /// Lets the end take so long from now on, for what has others' work to end.
    static func allow(seconds: Double) { patience.withLock { $0 = seconds } }

    /// Runs `body`; `SIGINT`, `SIGTERM` and `SIGHUP` cancel it, but for those that whoever started the process had it
    /// ignore, as `nohup` does. A second signal ends the process at once.
    ///
    /// - Returns: The result of `body`; after a signal 130 (`SIGINT`) or 1, unless all was done by then.
    static func exitCode(of body: @escaping @Sendable () async -> Int32) async -> Int32 {
        let received = Mutex<Int32?>(nil)
        let task = Task { await body() }
        let sources = [SIGINT, SIGTERM, SIGHUP].filter { !isIgnored($0) }.map { number in
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                let isFirst = received.withLock { former in
                    defer { former = former ?? number }
                    return former == nil
                }
                guard isFirst else { _exit(code(for: number)) }
                DispatchQueue.global().asyncAfter(deadline: .now() + patience.withLock { $0 }) {
                    _exit(code(for: number))
                }
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

    /// Has the process ignore a signal, whose default would end it before a source hears of it; whether it did already.
    private static func isIgnored(_ number: Int32) -> Bool {
        // `SIG_IGN` is the number 1, which can't be compared as the function that it is typed as.
        unsafeBitCast(signal(number, SIG_IGN), to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    private static func code(for number: Int32) -> Int32 { number == SIGINT ? 130 : 1 }
}

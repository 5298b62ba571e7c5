#if Tools
import Dispatch
import Foundation
import Synchronization

/// The signal handling, which cancels the running command and closes the cache before the process exits.
enum Interruption {
    /// The time within which a cancelled command must end, in seconds. If it takes longer, another process, such as the
    /// reader of a pipe, is probably blocking the command.
    private static let gracePeriod = Mutex(5.0)

    /// Sets the time limit, for commands that must finish work for clients.
    static func allow(seconds: Double) { gracePeriod.withLock { $0 = seconds } }

    /// Runs `body`, and cancels its task on `SIGINT`, `SIGTERM` and `SIGHUP`.
    ///
    /// Signals that the parent process has set to be ignored, for example with `nohup`, remain ignored. A second signal
    /// ends the process immediately.
    ///
    /// - Returns: The result of `body`. After a signal, it is 130 (`SIGINT`) or 1, unless `body` succeeded.
    static func exitCode(of body: @escaping @Sendable () async -> Int32) async -> Int32 {
        let received = Mutex<Int32?>(nil)
        let task = Task { await body() }
        let sources = [SIGINT, SIGTERM, SIGHUP].filter { !isIgnored($0) }.map { number in
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                let isFirst = received.withLock { previous in
                    defer { previous = previous ?? number }
                    return previous == nil
                }
                guard isFirst else { _exit(code(for: number)) }
                DispatchQueue.global().asyncAfter(deadline: .now() + gracePeriod.withLock { $0 }) {
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

    /// Makes the process ignore a signal, because the default action would end the process before a dispatch source
    /// handles the signal.
    ///
    /// - Returns: Whether the signal was already ignored.
    private static func isIgnored(_ number: Int32) -> Bool {
        // `SIG_IGN` is the number 1 with the type of a function, and functions cannot be compared.
        unsafeBitCast(signal(number, SIG_IGN), to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    private static func code(for number: Int32) -> Int32 { number == SIGINT ? 130 : 1 }
}

/// A wait that ends when the task is cancelled.
enum CancellationWait {
    static func wait() async {
        let waiting = Mutex<CheckedContinuation<Void, Never>?>(nil)
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                waiting.withLock { $0 = continuation }
                // The task may have been cancelled before it started to wait.
                if Task.isCancelled { waiting.withLock { $0.take() }?.resume() }
            }
        } onCancel: {
            waiting.withLock { $0.take() }?.resume()
        }
    }
}
#endif

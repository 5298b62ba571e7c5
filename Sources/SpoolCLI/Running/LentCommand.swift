import Foundation
import Spool
import SpoolProxy
import Synchronization

/// Runs a command for another process, on a cache that is open in this one.
enum LentCommand {
    private static let run = Mutex<(@Sendable ([String]) async -> Int32)?>(nil)

    /// Tells what runs a command line here, reports what goes wrong, and gives the exit status; once, at the beginning.
    static func use(_ run: @escaping @Sendable ([String]) async -> Int32) { self.run.withLock { $0 = run } }

    /// Those that do nothing but with the cache: nothing is read or written for the other process.
    private static let verbs = ["pin", "unpin", "rm", "gc", "verify", "offline"]

    /// A way to run them on a cache.
    static func runner(on cache: MediaCache) -> @Sendable ([String]) async -> CommandOutcome {
        let run = run.withLock { $0 }
        return { arguments in
            let verb = CommandWords.all(in: arguments).first ?? ""
            guard let run, verbs.contains(verb) else {
                let name = ShownArgument.text(verb)
                let cause = "a server has the cache directory, and “\(name)” is not run by it"
                return CommandOutcome(
                    output: "", errors: "error: \(cause): end it, or name another directory with --cache\n", status: 1)
            }
            let captured = CapturedOutput()
            let status = await Output.$captured.withValue(captured) {
                await CacheOptions.$lent.withValue(cache) { await run(arguments) }
            }
            return CommandOutcome(output: captured.output, errors: captured.errors, status: status)
        }
    }
}

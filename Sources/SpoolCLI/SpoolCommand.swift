import ArgumentParser
import Foundation
import Spool

/// The command line of the cache: one verb for each thing that a cache can do.
@main
struct SpoolCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "spool",
        abstract: "A media cache for players: play once, keep every byte.",
        subcommands: [
            GetCommand.self, PlayCommand.self, ListCommand.self, InfoCommand.self, PinCommand.self, UnpinCommand.self,
            RemoveCommand.self, GarbageCollectCommand.self, ExportCommand.self, VerifyCommand.self, DemoCommand.self,
        ])

    // Here as well as in each command, so that they may stand before the verb or after it.
    @OptionGroup var options: CacheOptions

    static func main() async {
        // A reader of standard output that goes away is an error to report, not a reason to die before the cache is
        // closed.
        signal(SIGPIPE, SIG_IGN)
        Foundation.exit(await Interruption.exitCode { await exitCode(of: Array(CommandLine.arguments.dropFirst())) })
    }

    /// Runs one command line; 0 when it did what was asked, 64 when it could not be understood, else 1. Errors are
    /// told as one line on standard error.
    private static func exitCode(of arguments: [String]) async -> Int32 {
        do {
            var command = try parseAsRoot(arguments)
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
            return 0
        } catch let error as CacheError {
            return fail(error.message)
        } catch is CancellationError {
            return fail("interrupted; what has landed is kept")
        } catch let failure as CommandFailure {
            return fail(failure.message)
        } catch {
            let code = exitCode(for: error)
            if code.isSuccess {
                Output.line(fullMessage(for: error))
                return 0
            }
            _ = fail(message(for: error))
            return code.rawValue
        }
    }

    private static func fail(_ message: String) -> Int32 {
        Output.remark("error: " + message)
        return 1
    }
}

import ArgumentParser
import Foundation
import Spool

/// The command line of the cache: one verb for each thing that a cache can do.
@main
struct SpoolCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "spool",
        abstract: "A media cache for players: play once, keep every byte.",
        version: SpoolVersion.current,
        subcommands: [
            GetCommand.self, PreloadCommand.self, PlayCommand.self, ListCommand.self, InfoCommand.self, PinCommand.self,
            UnpinCommand.self,
            OfflineCommand.self, RemoveCommand.self, GarbageCollectCommand.self, ExportCommand.self, ImportCommand.self,
            VerifyCommand.self, RekeyCommand.self, DemoCommand.self, ServeCommand.self, URLCommand.self,
        ])

    // Here as well as in each command, so that they may stand before the verb or after it.
    @OptionGroup var options: CacheOptions

    static func main() async {
        StandardDescriptors.fill()
        // A reader of standard output that goes away is an error to report, not a reason to die before the cache is
        // closed.
        signal(SIGPIPE, SIG_IGN)
        do {
            let arguments = try TypedArguments.all()
            LentCommand.use { await exitCode(of: $0) }
            Foundation.exit(await Interruption.exitCode { await exitCode(of: arguments) })
        } catch {
            Foundation.exit(exitCode(reporting: error, arguments: []))
        }
    }

    /// Runs one command line; 0 when it did what was asked, 64 when it could not be understood, else 1. Each error is
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
        } catch let server as HoldingServer {
            do {
                return try await server.run(arguments)
            } catch {
                return exitCode(reporting: error, arguments: arguments)
            }
        } catch {
            do {
                // Help and the version come as errors, too.
                guard exitCode(for: error).isSuccess else { throw error }
                // The parser takes help on what is no verb for help on all of them.
                if Verbs.correction(of: arguments) != nil {
                    throw CommandFailure(.usage, UsageError("", arguments: arguments).text)
                }
                try Output.line(fullMessage(for: error))
                return 0
            } catch {
                return exitCode(reporting: error, arguments: arguments)
            }
        }
    }

    private static func exitCode(reporting error: any Error, arguments: [String]) -> Int32 {
        let report = ErrorReport(error, arguments: arguments)
        for line in report.lines { Output.remark("error: " + line.abbreviated) }
        return report.status
    }
}

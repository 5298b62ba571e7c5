#if Tools
import ArgumentParser
import Foundation
import Spool
import SpoolHTTP
import SpoolProxy

/// The command `spool`: one subcommand for each operation of the cache.
@main
struct SpoolCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "spool",
        abstract: "A media cache for players: play once, keep every byte.",
        version: SpoolVersion.current,
        groupedSubcommands: [
            CommandGroup(name: "Playback", subcommands: [GetCommand.self, PreloadCommand.self, PlayCommand.self]),
            CommandGroup(
                name: "Contents",
                subcommands: [
                    ListCommand.self, InfoCommand.self, PinCommand.self, UnpinCommand.self, RemoveCommand.self,
                    GarbageCollectCommand.self, ExportCommand.self, ImportCommand.self,
                ]),
            CommandGroup(name: "Offline", subcommands: [OfflineCommand.self]),
            CommandGroup(name: "Server", subcommands: [ServeCommand.self, URLCommand.self]),
            CommandGroup(name: "Maintenance", subcommands: [VerifyCommand.self, RekeyCommand.self]),
            CommandGroup(name: "Demonstration", subcommands: [DemoCommand.self]),
        ])

    // This is also an option group of each subcommand, so the options may precede or follow the subcommand.
    @OptionGroup var options: CacheOptions

    static func main() async {
        StandardDescriptors.fill()
        // A closed pipe is an error to report. The default action of the signal would end the process before the cache
        // is closed.
        signal(SIGPIPE, SIG_IGN)
        do {
            let arguments = try TypedArguments.all()
            RemoteCommand.use { await exitCode(of: $0) }
            Foundation.exit(await Interruption.exitCode { await exitCode(of: arguments) })
        } catch {
            Foundation.exit(exitCode(reporting: error, arguments: []))
        }
    }

    /// Runs one command line, and writes each error as one line to standard error.
    ///
    /// - Returns: 0 on success, 64 if the command line is invalid, or 1 for other errors.
    private static func exitCode(of arguments: [String]) async -> Int32 {
        do {
            var command = try parseAsRoot(arguments)
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
            return 0
        } catch let server as RunningServer {
            do {
                return try await server.run(arguments)
            } catch {
                return exitCode(reporting: error, arguments: arguments)
            }
        } catch {
            do {
                // The parser also throws to print help and the version.
                guard exitCode(for: error).isSuccess else { throw error }
                // For an unknown subcommand, the parser prints the general help.
                if CommandNames.correction(of: arguments) != nil {
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

/// The error output of a failed command: the lines on standard error, and the exit status.
struct ErrorReport {
    /// One sentence for each failure. The array is empty if the reader of the output has closed the pipe.
    private(set) var lines: [String] = []
    private(set) var status: Int32 = 1

    /// Creates the report of an error that a command threw.
    ///
    /// - Parameter arguments: The command line, for errors about it.
    init(_ error: any Error, arguments: [String]) {
        switch error {
        case let failures as CommandFailures:
            let reports = failures.all.map { ErrorReport($0, arguments: arguments) }
            lines = reports.flatMap(\.lines)
        case let failure as CommandFailure where failure.code == .outputClosed: break
        case let failure as CommandFailure where failure.code == .usage:
            (lines, status) = ([failure.message], 64)
        case let failure as CommandFailure: lines = [failure.message]
        case let error as CacheError: lines = [Self.line(error, error.advice)]
        case let advised as AdvisedError: lines = [Self.line(advised.error, advised.advice)]
        case let error as UpstreamError: lines = [error.message]
        case let error as ProxyError: lines = [error.description]
        case is CancellationError: lines = ["interrupted; received bytes stay in the cache"]
        default:
            status = SpoolCommand.exitCode(for: error).rawValue
            let message = SpoolCommand.message(for: error)
            lines = [status == 64 ? UsageError(message, arguments: arguments).text : message]
        }
    }

    private static func line(_ error: CacheError, _ advice: String?) -> String {
        [error.message, advice].compactMap(\.self).joined(separator: "; ")
    }
}

extension CacheError {
    /// The next step for the user, if the message does not include it.
    fileprivate var advice: String? {
        switch code {
        case .directoryInUse:
            "wait for that process or end it, or choose another directory with --cache; ls, info, export "
                + "and get of stored bytes still work"
        case .catalogTooNew: "use that version, or choose another directory with --cache"
        case .catalogDamaged: "“spool verify” moves the catalog aside and creates an empty one"
        // Without a key, the error is about the directory.
        case .notStored where key == nil: "choose a cache directory with --cache"
        case .notStored: "“spool ls” lists the stored media"
        case .incomplete where range != nil: "“spool get” fetches the rest"
        case .capacityExceeded: "use a larger --capacity, or unpin or remove other media"
        case .keyRequired: "--key-file or --passphrase-file specifies the key"
        case .originErrorStatus where httpStatus == 401 || httpStatus == 403: "--header @FILE sends credentials"
        case _ where (underlying as? UpstreamError)?.underlying is RefusedDowngrade:
            "--allow-http-redirects allows the redirect, without encryption"
        default: nil
        }
    }
}

/// Standard input, output and error. The parent process may have closed any of them.
private enum StandardDescriptors {
    /// Opens `/dev/null` for reading under the number of each closed descriptor.
    ///
    /// Otherwise, the next file that is opened would get that descriptor, and output would be written to it. This
    /// function must be called before any file is opened.
    static func fill() {
        for descriptor in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO]
        where fcntl(descriptor, F_GETFD) == -1 && errno == EBADF {
            // The new file gets this descriptor, because it is the lowest free one. If `/dev/null` is missing, the
            // descriptor stays closed.
            _ = open("/dev/null", O_RDONLY)
        }
    }
}
#endif

import ArgumentParser
import Foundation
import Spool

/// Options of every command: which cache, and the form of the output.
struct CacheOptions: ParsableArguments {
    @Option(
        name: .customLong("cache"),
        help: ArgumentHelp(
            "The cache's directory.",
            discussion: "Otherwise $SPOOL_CACHE, or the platform's cache folder.", valueName: "dir"),
        completion: .directory)
    var cachePath: String?

    @OptionGroup var keys: KeyOptions

    @Flag(help: "Print one JSON value on standard output, and nothing else there.")
    var json = false

    @Flag(help: "Write a log to standard error.")
    var verbose = false

    /// A cache that is open in this process, for a command that is run for another one.
    @TaskLocal static var lent: MediaCache?

    /// The cache's directory.
    var directory: URL {
        let environment = ProcessInfo.processInfo.environment
        return CacheLocation.directory(
            option: cachePath, environment: environment, home: CacheLocation.home(environment: environment))
    }
}

import ArgumentParser
import Foundation

/// What every command takes: which cache, and how to speak.
struct CacheOptions: ParsableArguments {
    @Option(
        name: .customLong("cache"),
        help: ArgumentHelp(
            "The cache's directory.",
            discussion: "Otherwise $SPOOL_CACHE, or the platform's cache folder.", valueName: "dir"),
        completion: .directory)
    var cachePath: String?

    @Flag(help: "Print one JSON value on standard output, and nothing else there.")
    var json = false

    @Flag(help: "Write a log to standard error.")
    var verbose = false

    /// The cache's directory.
    var directory: URL {
        CacheLocation.directory(
            option: cachePath, environment: ProcessInfo.processInfo.environment,
            home: FileManager.default.homeDirectoryForCurrentUser)
    }
}

/// Where the cache is.
enum CacheLocation {
    /// The option, else `SPOOL_CACHE`, else the platform's folder; empty texts count as none.
    static func directory(option: String?, environment: [String: String], home: URL) -> URL {
        func path(_ text: String?) -> URL? {
            guard let text, !text.isEmpty else { return nil }
            return URL(fileURLWithPath: text, isDirectory: true)
        }
        if let chosen = path(option) ?? path(environment["SPOOL_CACHE"]) { return chosen }
        #if canImport(Darwin)
        return home.appendingPathComponent("Library/Caches/spool", isDirectory: true)
        #else
        // A relative path in XDG_CACHE_HOME is to be ignored (XDG Base Directory Specification).
        let base = environment["XDG_CACHE_HOME"].flatMap { $0.hasPrefix("/") ? path($0) : nil }
        return (base ?? home.appendingPathComponent(".cache")).appendingPathComponent("spool", isDirectory: true)
        #endif
    }
}

import Foundation

/// Where the cache is.
enum CacheLocation {
    /// The person's home: what `HOME` says, else what the system's records say.
    static func home(environment: [String: String]) -> URL {
        if let home = environment["HOME"], home.hasPrefix("/") { return URL(fileURLWithPath: home, isDirectory: true) }
        return URL(fileURLWithPath: NSHomeDirectory(), isDirectory: true)
    }

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

#if Tools
import ArgumentParser
import Foundation
import Spool

/// `spool export`: copies a complete resource out of the cache.
struct ExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Copy a complete resource into a file, and verify every byte.",
        discussion: "This also works while another process uses the cache.")

    struct Report: Encodable, Sendable {
        var url: String
        var file: String
        var bytes: Int64
    }

    @OptionGroup var options: CacheOptions
    @Argument(help: "The URL of the media.") var url: MediaURL
    @Argument(help: "The file to write, or - for standard output.", completion: .file()) var file: String

    func validate() throws {
        if options.json, file == "-" { throw ValidationError("--json and - both need standard output") }
        if file.isEmpty {
            throw ValidationError("the argument <file> is empty: give the file to write, or - for standard output")
        }
    }

    func run() async throws {
        guard let stored = try await options.contents(of: url.key)?.first else { throw url.notStored }
        if file != "-" { try options.rejectOutputInCache(file) }
        let target = URL(fileURLWithPath: file)
        let cache = try await options.openNow { $0.isReadOnly = true }
        try await options.use(cache) { cache in
            let media = cache.media(for: url.url)
            guard file == "-" else { return try await media.export(to: target) }
            let output = try await OutputTarget(file)
            try await media.export { try await output.write($0) }
        }
        let report = Report(url: stored.redactedURL, file: target.path, bytes: stored.length ?? stored.storedByteCount)
        if options.json { return try Output.json(report) }
        let bytes = ByteCount(bytes: report.bytes).text
        if file != "-" {
            try Output.line("\(bytes) written to \(file)")
        } else if Output.isErrorTerminal {
            Output.remark("\(bytes) of \(report.url) written")
        }
    }
}

/// `spool import`: adds a file to the cache as a complete resource.
struct ImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Add a file to the cache as a complete resource.",
        discussion: """
            The file's length must match the origin's response headers, and its hash must match if the headers contain \
            one. If different bytes are already stored for the URL, nothing is imported and the exit status is 1, \
            unless --replace is given.
            """)

    struct Report: Encodable, Sendable {
        var url: String
        var bytes: Int64
        var verifiedBy: String
    }

    @OptionGroup var options: CacheOptions
    @OptionGroup var fetching: FetchOptions
    @Argument(help: "The file to read.", completion: .file()) var file: String
    @Argument(help: "The URL of the media in the file.") var url: MediaURL
    @Flag(help: "Do not check the file against the origin.") var noVerify = false
    @Flag(help: "Replace different bytes that are already stored for the URL.") var replace = false

    func validate() throws {
        if file.isEmpty { throw ValidationError("the argument <file> is empty: give the file to read") }
    }

    func run() async throws {
        let source = try await fetching.source(url.url)
        let (proof, bytes) = try await withWritableCache { cache in
            let proof = try await cache.importFile(
                at: URL(fileURLWithPath: file), as: source, verify: !noVerify, replaceExisting: replace)
            return (proof, try await cache.media(for: source).storedResource()?.storedByteCount ?? 0)
        }
        let verifiedBy = proof == .hash ? "hash" : proof == .length ? "length" : "nothing"
        if options.json {
            return try Output.json(Report(url: source.redactedURL, bytes: bytes, verifiedBy: verifiedBy))
        }
        let verification = proof == .hash || proof == .length ? "verified by \(verifiedBy)" : "not verified"
        try Output.line("\(ByteCount(bytes: bytes).text) imported as \(source.redactedURL), \(verification)")
    }

    /// Opens the cache for writing. A server that uses the directory cannot run this command, because it does not read
    /// files on behalf of other processes.
    private func withWritableCache<R: Sendable>(_ body: (MediaCache) async throws -> R) async throws -> R {
        do {
            return try await options.withCache(capacity: fetching.size.capacity, upstream: fetching.upstream(), body)
        } catch is RunningServer {
            throw CacheError(.directoryInUse, "a server is using the cache, and can't import files for other processes")
        }
    }
}
#endif

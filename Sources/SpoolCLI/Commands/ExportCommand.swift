import ArgumentParser
import Foundation
import Spool

/// `spool export`: copies a complete resource out of the cache.
struct ExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Copy a complete resource into a file, and verify every byte.",
        discussion: "Also while another process uses the cache.")

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
        if file.isEmpty { throw ValidationError("<file> is empty: give the file to write, or - for standard output") }
    }

    func run() async throws {
        guard let media = try await options.contents(of: url.key)?.first else { throw url.notStored }
        if file == "-" { return try await deliver(media) }
        let target = URL(fileURLWithPath: file)
        try options.refuseWithinCache(file)
        do {
            let cache = try await options.openNow()
            try await options.use(cache) { try await $0.export(url.key, to: target) }
        } catch let error as CacheError where error.code == .directoryInUse {
            let (key, path, encryptionKey) = (url.key, options.directory.path, try options.keys.key())
            let isDone = try await BlockingExecutor(threadLimit: 1).run {
                try StoredReader(path: path, key: key, encryptionKey: encryptionKey)?.export(to: target) != nil
            }
            guard isDone else { throw url.notStored }
        }
        let report = Report(url: media.address, file: target.path, bytes: media.length ?? media.storedByteCount)
        if options.json { return try Output.json(report) }
        try Output.line("\(ByteCount(bytes: report.bytes).text) written to \(file)")
    }

    /// Writes the media to standard output. Only reads the cache.
    private func deliver(_ media: StoredResource) async throws {
        let executor = BlockingExecutor(threadLimit: 1)
        let (key, path, encryptionKey) = (url.key, options.directory.path, try options.keys.key())
        let stored = try await executor.run { try StoredReader(path: path, key: key, encryptionKey: encryptionKey) }
        guard let stored else { throw url.notStored }
        let length = try stored.completeLength()
        let target = try await OutputTarget(file)
        var offset: Int64 = 0
        while offset < length {
            try Task.checkCancellation()
            let next = offset..<min(length, offset + 1 << 20)
            let bytes = try await executor.run { try stored.readComplete(next) }
            try await target.write(bytes)
            offset += Int64(bytes.count)
        }
        if Output.isWatched { Output.remark("\(ByteCount(bytes: length).text) of \(media.address) written") }
    }
}

/// `spool import`: adds a file to the cache as a complete resource.
struct ImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Add a file to the cache as a complete resource.",
        discussion: """
            The origin's response headers must contain the length of the file, and its hash if they contain one. If other \
            bytes are stored for the URL, they stay and the exit status is 1, unless --replace is given.
            """)

    struct Report: Encodable, Sendable {
        var url: String
        var bytes: Int64
        var checked: String
    }

    @OptionGroup var options: CacheOptions
    @OptionGroup var fetching: FetchOptions
    @Argument(help: "The file to read.", completion: .file()) var file: String
    @Argument(help: "The URL of the media in the file.") var url: MediaURL
    @Flag(help: "Do not check the file against the origin.") var unchecked = false
    @Flag(help: "Replace other bytes that are stored for the URL.") var replace = false

    func validate() throws {
        if file.isEmpty { throw ValidationError("<file> is empty: give the file to read") }
    }

    func run() async throws {
        let source = try await fetching.source(url.url)
        let (proof, bytes) = try await withWritableCache { cache in
            let proof = try await cache.importFile(
                at: URL(fileURLWithPath: file), as: source, isChecked: !unchecked, replacesOthers: replace)
            return (proof, try await cache.storedResource(for: source)?.storedByteCount ?? 0)
        }
        let checked = proof == .hash ? "hash" : proof == .length ? "length" : "nothing"
        if options.json {
            return try Output.json(Report(url: source.displayAddress, bytes: bytes, checked: checked))
        }
        try Output.line("\(ByteCount(bytes: bytes).text) imported as \(source.displayAddress), checked: \(checked)")
    }

    /// Opens the cache for writing. A server that uses the directory reads no files for other processes.
    private func withWritableCache<R: Sendable>(_ body: (MediaCache) async throws -> R) async throws -> R {
        do {
            return try await options.withCache(capacity: fetching.room.capacity, upstream: fetching.upstream(), body)
        } catch is HoldingServer {
            throw CacheError(.directoryInUse, "a server uses the cache, and reads no files for other processes")
        }
    }
}

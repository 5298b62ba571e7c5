import ArgumentParser
import Foundation
import Spool

/// `spool import`: take a file in as a complete resource.
struct ImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Take a file into the cache as a complete resource.",
        discussion: """
            The origin is asked for the head: the length must be the file's, and the hash, too, where the head has one. \
            Other bytes that are stored under the URL are left alone, and the exit status is 1, unless --replace is given.
            """)

    struct Report: Encodable, Sendable {
        var url: String
        var bytes: Int64
        var checked: String
    }

    @OptionGroup var options: CacheOptions
    @OptionGroup var fetching: FetchOptions
    @Argument(help: "The file to read.", completion: .file()) var file: String
    @Argument(help: "The URL of the media that it is.") var url: MediaURL
    @Flag(help: "Do not ask the origin: nobody vouches for the file.") var unchecked = false
    @Flag(help: "Remove other bytes that are stored under the URL.") var replace = false

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
        try Output.line("\(ByteCount(bytes: bytes).text) taken in as \(source.displayAddress); checked: \(checked)")
    }

    /// As ``CacheOptions/withCache(capacity:upstream:_:)``; a server that has the cache reads no files for others.
    private func withWritableCache<R: Sendable>(_ body: (MediaCache) async throws -> R) async throws -> R {
        do {
            return try await options.withCache(capacity: fetching.room.capacity, upstream: fetching.upstream(), body)
        } catch is HoldingServer {
            throw CacheError(.directoryInUse, "a server has the cache, and reads no files for others")
        }
    }
}

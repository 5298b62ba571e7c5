#if Tools
import ArgumentParser
import Foundation
import HTTPTypes
import Spool
import SpoolHTTP

/// The options of commands that may send requests to an origin.
struct FetchOptions: ParsableArguments {
    @Option(
        name: .customLong("header"),
        help: ArgumentHelp(
            "A header field to send to the origin, or @FILE for a file with one field per line; may be repeated.",
            discussion: "Other users can read command lines, so put tokens in a file. The fields in the "
                + "file that $SPOOL_HEADERS names are also sent. Fields with the same name in --header replace them.",
            valueName: "name: value"))
    var headers: [HeaderOption] = []

    @Flag(
        name: .customLong("allow-http-redirects"),
        help: "Follow redirects from https to http, which is not encrypted.")
    var allowsInsecureRedirects = false
    @Option(
        help: ArgumentHelp(
            "Minimum speed of a response of known length, in bytes per second, such as 50kB; a response that is "
                + "slower for 30 s, and was faster before, is requested again (0 disables the limit).",
            valueName: "bytes"))
    var lowSpeedLimit = ByteCount(bytes: Int64(HTTPUpstream.Configuration().lowSpeedLimit))

    @Option(help: ArgumentHelp("The maximum number of redirects to follow for one request.", valueName: "n"))
    var maximumRedirects = HTTPUpstream.Configuration().maximumRedirects

    @OptionGroup var size: CapacityOptions

    /// The configuration of the HTTP client.
    var upstreamConfiguration: HTTPUpstream.Configuration {
        var configuration = HTTPUpstream.Configuration()
        configuration.allowsInsecureRedirects = allowsInsecureRedirects
        configuration.lowSpeedLimit = Int(clamping: lowSpeedLimit.bytes)
        configuration.maximumRedirects = maximumRedirects
        return configuration
    }

    func validate() throws {
        guard maximumRedirects >= 0 else { throw ValidationError("--maximum-redirects must be 0 or more") }
    }

    /// Returns the HTTP client.
    func upstream() -> any Upstream { HTTPUpstream.standard(upstreamConfiguration) }

    /// Returns a source of the media at `url`, with the header fields of these options.
    ///
    /// - Throws: ``CommandFailure`` with code `headerFile` if the fields can't be read. `CancellationError` if the task
    ///   is cancelled while it waits for a pipe with fields.
    func source(_ url: URL) async throws -> MediaSource {
        try await InterruptibleExecutor(name: "spool.headers").run { [self] in
            try source(url, environment: ProcessInfo.processInfo.environment)
        }
    }

    /// Returns sources that share the same header fields, which are read once.
    ///
    /// - Throws: The same errors as ``source(_:)``.
    func sources(_ urls: [URL]) async throws -> [MediaSource] {
        let fields = try await headerFields()
        return urls.map { MediaSource(url: $0, headerFields: fields) }
    }

    /// Returns the header fields of these options.
    ///
    /// - Throws: The same errors as ``source(_:)``.
    func headerFields() async throws -> HTTPFields {
        try await InterruptibleExecutor(name: "spool.headers").run { [self] in
            try headerFields(environment: ProcessInfo.processInfo.environment)
        }
    }

    /// Returns the same source as ``source(_:)``, but blocks the thread.
    func source(_ url: URL, environment: [String: String]) throws -> MediaSource {
        guard !url.isFileURL else { return MediaSource(url: url) }
        return MediaSource(url: url, headerFields: try headerFields(environment: environment))
    }

    private func headerFields(environment: [String: String]) throws -> HTTPFields {
        var fields = HTTPFields()
        for header in headers {
            switch header {
            case .field(let header): fields.append(header.field)
            case .file(let path): for field in try HeaderFile(path: path).fields { fields.append(field) }
            }
        }
        if let path = environment["SPOOL_HEADERS"], !path.isEmpty {
            let given = fields
            for field in try HeaderFile(path: path).fields where given[field.name] == nil { fields.append(field) }
        }
        return fields
    }
}

/// The size limit of the cache.
struct CapacityOptions: ParsableArguments {
    /// The value of `--capacity`: a size, or `none` for no limit.
    enum Capacity: Hashable, Sendable, ExpressibleByArgument {
        case bytes(Int64)
        case none

        init?(argument: String) {
            if argument.lowercased() == "none" {
                self = .none
            } else {
                guard let size = ByteCount(argument: argument) else { return nil }
                self = .bytes(size.bytes)
            }
        }

        /// The limit, as the library's type.
        var inLibrary: CacheCapacity { if case .bytes(let bytes) = self { .bytes(bytes) } else { .unlimited } }
    }

    @Option(
        help: ArgumentHelp(
            "Capacity of the cache, such as 500MB or 2GiB, or “none” for no limit; stored in the cache directory.",
            valueName: "size"))
    var capacity: Capacity?
}
#endif

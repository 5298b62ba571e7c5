import ArgumentParser
import Foundation
import HTTPTypes
import Spool
import SpoolHTTP

/// Options of the commands that may ask an origin.
struct FetchOptions: ParsableArguments {
    @Option(
        name: .customLong("header"),
        help: ArgumentHelp(
            "A header field to send to the origin, or @FILE for a file with one on each line; any number of them.",
            discussion: "Other users see a command line: a token belongs into a file. Fields of the file that "
                + "$SPOOL_HEADERS names are sent as well, unless --header gives one of the same name.",
            valueName: "name: value"))
    var headers: [HeaderOption] = []

    @Flag(
        name: .customLong("allow-http-redirects"),
        help: "Follow redirects from https to http, too; what comes then could be anybody's.")
    var allowsRedirectsToHTTP = false
    @Option(
        help: ArgumentHelp(
            "Bytes a second, such as 50kB, below which a response counts as stalled after 30 seconds; 0 for none.",
            valueName: "bytes"))
    var minimumRate = ByteCount(bytes: Int64(HTTPUpstream.Configuration().minimumRate))

    @Option(help: ArgumentHelp("The maximum number of redirects to follow for one request.", valueName: "n"))
    var maximumRedirects = HTTPUpstream.Configuration().maximumRedirects

    @OptionGroup var room: RoomOptions

    /// How the origin is asked.
    var upstreamConfiguration: HTTPUpstream.Configuration {
        var configuration = HTTPUpstream.Configuration()
        configuration.allowsRedirectsToHTTP = allowsRedirectsToHTTP
        configuration.minimumRate = Int(clamping: minimumRate.bytes)
        configuration.maximumRedirects = maximumRedirects
        return configuration
    }

    func validate() throws {
        guard maximumRedirects >= 0 else { throw ValidationError("--maximum-redirects must be 0 or more") }
    }

    /// Where bytes come from.
    func upstream() -> any Upstream { HTTPUpstream.standard(upstreamConfiguration) }

    /// A source of the media at `url`, asked for with these header fields.
    ///
    /// - Throws: ``CommandFailure`` with code `headerFile`; `CancellationError`, where a pipe of fields is not written.
    func source(_ url: URL) async throws -> MediaSource {
        try await Abandonable(name: "spool.headers").run { [self] in
            try source(url, environment: ProcessInfo.processInfo.environment)
        }
    }

    /// Sources of several media files, asked for with the same header fields, which are read once.
    ///
    /// - Throws: As ``source(_:)``.
    func sources(_ urls: [URL]) async throws -> [MediaSource] {
        let fields = try await headerFields()
        return urls.map { MediaSource(url: $0, headerFields: fields) }
    }

    /// The header fields alone.
    ///
    /// - Throws: As ``source(_:)``.
    func headerFields() async throws -> HTTPFields {
        try await Abandonable(name: "spool.headers").run { [self] in
            try headerFields(environment: ProcessInfo.processInfo.environment)
        }
    }

    /// As ``source(_:)``, blocking.
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

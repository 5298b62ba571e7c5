#if Tools
import Foundation
import HTTPTypes
import Spool
import SpoolHTTP
import SpoolProxy
import Synchronization

/// The server that uses the cache directory. Commands send requests to it instead of waiting for it to end.
struct RunningServer: Error {
    /// The address of the server's control port.
    private let address: String
    /// The credentials for that port. They are not part of the address, so that messages never show them.
    private let secret: String

    /// Finds the server that uses a directory. The result is `nil` if the directory does not name a server.
    init?(of directory: URL) {
        let parts = MediaCache.announcement(in: directory)?.split(separator: " ") ?? []
        guard parts.count == 2, parts[0].hasPrefix("http://127.0.0.1:") else { return nil }
        (address, secret) = (String(parts[0]), String(parts[1]))
    }

    /// Records the server's control address in the directory.
    static func announce(_ server: ProxyServer, in cache: MediaCache) async throws {
        try await cache.announce(server.controlAddress.map { "\($0.address) \($0.secret)" })
    }

    /// Returns a transport for which the server fetches and stores the requested bytes.
    ///
    /// - Parameter isPreload: Whether no player is waiting for the bytes. If so, the server gives priority to its
    ///   players.
    func upstream(isPreload: Bool) -> any Upstream {
        var configuration = HTTPUpstream.Configuration()
        // The server does not send a response while its players are waiting for bytes.
        if isPreload { configuration.responseTimeout = .seconds(3600) }
        // The server runs on this machine, and its credentials must not be sent to a proxy.
        configuration.proxyEnvironment = [:]
        return ServerUpstream(
            address: address, secret: secret, isPreload: isPreload, http: HTTPUpstream.standard(configuration))
    }

    /// Runs a command in the server.
    ///
    /// - Returns: The exit status, after the output of the command has been printed in this process.
    func run(_ arguments: [String]) async throws -> Int32 {
        guard let url = URL(string: address + "/.spool/api/command") else { throw unusable }
        var configuration = HTTPUpstream.Configuration()
        // A command may take up to a day.
        configuration.responseTimeout = .seconds(24 * 3600)
        configuration.proxyEnvironment = [:]
        let body = try JSONEncoder().encode(CommandCall(arguments: arguments))
        var request = UpstreamRequest(url: url, headerFields: [.contentLength: String(body.count)])
        request.headerFields[.proxyAuthorization] = "Bearer \(secret)"
        request.method = .post
        request.body = UpstreamBody(
            AsyncStream { continuation in
                continuation.yield(body)
                continuation.finish()
            })
        let response = try await HTTPUpstream.standard(configuration).open(request)
        var data = Data()
        for try await chunk in response.body { chunk.withUnsafeBytes { data.append(contentsOf: $0) } }
        guard response.head.status == .ok, let outcome = try? JSONDecoder().decode(CommandOutcome.self, from: data)
        else { throw unusable }  // Another program is using the port now.
        _ = Array(outcome.errors.utf8).withUnsafeBytes { Output.write($0, to: STDERR_FILENO) }
        try Output.write(Array(outcome.output.utf8))
        return outcome.status
    }

    private var unusable: CacheError {
        CacheError(.directoryInUse, "the server that uses the cache directory does not respond as expected")
    }

    /// A transport that sends requests to origins through the server.
    private struct ServerUpstream: Upstream {
        let address: String
        let secret: String
        let isPreload: Bool
        let http: any Upstream

        func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
            let original = request.url
            var request = request
            do {
                let path = ForwardAddress.requestTarget(for: try OriginURL(request.url))
                guard let url = URL(string: address + path) else { throw URLError(.badURL) }
                request.url = url
            } catch {
                throw UpstreamError(
                    .other, "the URL can't be requested through the server: \(error)", underlying: error)
            }
            request.headerFields[.proxyAuthorization] = "Bearer \(secret)"
            // This is the lowest urgency (RFC 9218 §4.1).
            if isPreload { request.headerFields[.priority] = "u=7" }
            var response = try await http.open(request)
            // References in a playlist are relative to its own URL, not to its URL at the server.
            response.url = original
            return response
        }
    }
}

/// The execution of a command for another process, on a cache that is open in this process.
enum RemoteCommand {
    private static let run = Mutex<(@Sendable ([String]) async -> Int32)?>(nil)

    /// Sets the function that runs a command line, reports errors, and returns the exit status. Call this method once,
    /// at startup.
    static func use(_ run: @escaping @Sendable ([String]) async -> Int32) { self.run.withLock { $0 = run } }

    /// The commands that use only the cache, and neither read nor write files for the other process.
    private static let commands = ["pin", "unpin", "rm", "gc", "verify", "offline"]

    /// Returns a function that runs the allowed commands on a cache.
    static func runner(on cache: MediaCache) -> @Sendable ([String]) async -> CommandOutcome {
        let run = run.withLock { $0 }
        return { arguments in
            let command = CommandWords.all(in: arguments).first ?? ""
            guard let run, commands.contains(command) else {
                let name = RedactedArgument.text(command)
                let cause = "a server is using the cache directory, and can't run “\(name)”"
                return CommandOutcome(
                    output: "", errors: "error: \(cause) (stop the server, or choose another directory with --cache)\n",
                    status: 1
                )
            }
            let captured = CapturedOutput()
            let status = await Output.$captured.withValue(captured) {
                await CacheOptions.$serverCache.withValue(cache) { await run(arguments) }
            }
            return CommandOutcome(output: captured.output, errors: captured.errors, status: status)
        }
    }
}
#endif

import Foundation
import HTTPTypes
import Spool
import SpoolHTTP
import SpoolProxy

/// A server that has the cache directory: commands ask it, rather than wait until it ends.
struct HoldingServer: Error {
    /// Where it takes commands.
    private let address: String
    /// What lets them in; it stands in no address, so that no message shows it.
    private let secret: String

    /// The server that has a directory; nil if none says that it has.
    init?(of directory: URL) {
        let parts = MediaCache.announcement(in: directory)?.split(separator: " ") ?? []
        guard parts.count == 2, parts[0].hasPrefix("http://127.0.0.1:") else { return nil }
        (address, secret) = (String(parts[0]), String(parts[1]))
    }

    /// What a server with a cache and this address notes in the directory.
    static func announce(_ server: ProxyServer, in cache: MediaCache) async throws {
        try await cache.announce(server.controlAddress.map { "\($0.address) \($0.secret)" })
    }

    /// Where bytes come from that the server fetches, and keeps, for others.
    ///
    /// - Parameter isPreload: Whether nobody waits for them: the server's players go first.
    func upstream(isPreload: Bool) -> any Upstream {
        var configuration = HTTPUpstream.Configuration()
        // While players wait for bytes, it sends none.
        if isPreload { configuration.headTimeout = .seconds(3600) }
        // It is on this machine, and what lets in there is for no other proxy.
        configuration.proxyEnvironment = [:]
        return Way(
            address: address, secret: secret, isPreload: isPreload, http: HTTPUpstream.standard(configuration))
    }

    /// Has the server run a command.
    ///
    /// - Returns: The exit status, once what it printed is printed here.
    func run(_ arguments: [String]) async throws -> Int32 {
        guard let url = URL(string: address + "/.spool/api/command") else { throw unusable }
        var configuration = HTTPUpstream.Configuration()
        // As long as the command takes.
        configuration.headTimeout = .seconds(24 * 3600)
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
        else { throw unusable }  // Whatever else listens there by now.
        _ = Array(outcome.errors.utf8).withUnsafeBytes { Output.write($0, to: STDERR_FILENO) }
        try Output.write(Array(outcome.output.utf8))
        return outcome.status
    }

    private var unusable: CacheError {
        CacheError(.directoryInUse, "the server that has the cache directory does not respond as one")
    }

    /// The way to origins through the server.
    private struct Way: Upstream {
        let address: String
        let secret: String
        let isPreload: Bool
        let http: any Upstream

        func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
            var request = request
            do {
                let path = ForwardAddress.requestTarget(for: try OriginURL(request.url))
                guard let url = URL(string: address + path) else { throw URLError(.badURL) }
                request.url = url
            } catch {
                throw UpstreamError(
                    .failed, "the address can't be asked through the server: \(error)", underlying: error)
            }
            request.headerFields[.proxyAuthorization] = "Bearer \(secret)"
            // The lowest urgency (RFC 9218 §4.1).
            if isPreload { request.headerFields[.priority] = "u=7" }
            return try await http.open(request)
        }
    }
}

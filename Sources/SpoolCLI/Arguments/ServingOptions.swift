import ArgumentParser
import Foundation
import SpoolProxy

/// Options of `spool serve` that say how it listens, and for whom.
struct ServingOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Where to listen; port 0 picks one.", valueName: "host:port"))
    var listen = ListenAddress.standard
    @Option(help: ArgumentHelp("The origin that the server stands for.", valueName: "url"))
    var origin: MediaURL?
    @Option(
        help: ArgumentHelp(
            "A secret that every request must have: as the first part of its path, /~TOKEN/…, or as Bearer.",
            discussion: "Other users see a command line; --token-file keeps it from them."))
    var token: String?
    @Option(
        name: .customLong("token-file"), help: ArgumentHelp("A file with the token.", valueName: "file"),
        completion: .file())
    var tokenFile: String?
    @Flag(name: .customLong("no-token"), help: "Serve other machines without a token; only with --origin.")
    var isOpen = false
    @Option(
        name: .customLong("allow-host"),
        help: ArgumentHelp("Origins that may be asked: example.com, *.example.com; any number.", valueName: "pattern"))
    var allowedHosts: [String] = []
    @Option(
        name: .customLong("cors-origin"),
        help: ArgumentHelp("Pages that may read what is served; any number.", valueName: "origin"))
    var corsOrigins: [String] = []
    @Option(
        name: .customLong("server-name"),
        help: ArgumentHelp("A further name by which clients know the server; any number.", valueName: "host"))
    var serverNames: [String] = []
    @Option(help: ArgumentHelp("Where metrics and contents are, in place of /.spool/.", valueName: "host:port"))
    var admin: ListenAddress?
    @Option(
        name: .customLong("access-log"),
        help: ArgumentHelp("A file that gets a line for each request.", valueName: "file"),
        completion: .file())
    var accessLog: String?
    @Option(help: ArgumentHelp("The server's name in Cache-Status.", valueName: "name"))
    var node: String?

    /// The server's configuration.
    ///
    /// - Throws: ``CommandFailure`` with code `headerFile` if the token's file can't be read.
    func configuration() throws -> ProxyConfiguration {
        var configuration = ProxyConfiguration()
        configuration.host = listen.host
        configuration.port = listen.port
        configuration.origin = origin?.url
        configuration.token = try token ?? tokenFile.map { try Self.token(in: $0) }
        configuration.allowsAnyone = isOpen
        configuration.allowedHosts = allowedHosts
        configuration.corsOrigins = corsOrigins
        configuration.serverNames = serverNames
        configuration.admin = admin.map { ($0.host, $0.port) }
        configuration.accessLog = accessLog.map { URL(fileURLWithPath: $0) }
        configuration.nodeName = node
        return configuration
    }

    private static func token(in path: String) throws -> String {
        do {
            let text = try String(contentsOf: URL(fileURLWithPath: path), encoding: .utf8)
            return text.trimmingCharacters(in: .whitespacesAndNewlines)
        } catch {
            throw CommandFailure(.headerFile, "the token's file “\(path)” can't be read: \(error.localizedDescription)")
        }
    }
}

/// A host and a port, as options have them.
struct ListenAddress: ExpressibleByArgument, Sendable, Hashable {
    var host: String
    var port: Int

    static let standard = ListenAddress(host: "127.0.0.1", port: 8787)

    init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    init?(argument: String) {
        guard let colon = argument.lastIndex(of: ":"), let port = UInt16(argument[argument.index(after: colon)...])
        else {
            return nil
        }
        let name = argument[..<colon]
        let isBracketed = name.hasPrefix("[") && name.hasSuffix("]")
        guard !name.isEmpty, isBracketed || !name.contains(":") else { return nil }
        host = isBracketed ? String(name.dropFirst().dropLast()) : String(name)
        self.port = Int(port)
    }

    var defaultValueDescription: String { "\(host):\(port)" }
}

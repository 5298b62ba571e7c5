import Foundation
import HTTPTypes
import Spool
import SpoolHTTP
import SpoolTesting
import Testing

#if AsyncHTTPClient
import NIOSSL

/// Tests of trust and of HTTP/2, which need TLS.
@Suite(.timeLimit(.minutes(10))) struct TransportTests {
    @Test func `A self-signed certificate is untrusted unless it is a trust root`() async throws {
        let certificate = try TestCertificate.make()
        defer { certificate.remove() }
        var careless = TLSConfiguration.makeClientConfiguration()
        careless.certificateVerification = .none
        let untrusting: [any Upstream] = [
            AsyncHTTPClientUpstream(), AsyncHTTPClientUpstream(tlsConfiguration: careless), URLSessionUpstream(),
        ]
        try await OriginServer.run(["/a": .pattern(1000)], identity: certificate.identity) { origin in
            for upstream in untrusting {
                let error = await #expect(throws: UpstreamError.self, "\(type(of: upstream))") {
                    try await upstream.open(UpstreamRequest(url: origin.url("/a")))
                }
                #expect(error?.isTransient == false)
                // FoundationNetworking has no code for this error, so the transport reports `other`.
                guard upstream is AsyncHTTPClientUpstream else { continue }
                #expect(error?.code == .untrustedServer)
                #expect(error?.message.hasSuffix("is not trusted: its certificate can't be verified") == true)
            }
            let trusting = AsyncHTTPClientUpstream(additionalTrustRoots: [certificate.identity.certificate])
            let response = try await trusting.open(UpstreamRequest(url: origin.url("/a")))
            var count = 0
            for try await chunk in response.body { count += chunk.count }
            #expect(count == 1000)
            #expect(origin.log.exchanges.count == 1, "no request is sent over an untrusted connection")
        }
    }

    @Test("E286: the name of the Host field is capitalized, and its value contains the port")
    func hostField() async throws {
        try await OriginServer.run(["/a": .pattern(1000)]) { origin in
            let url = origin.url("/a")
            _ = try await AsyncHTTPClientUpstream().open(UpstreamRequest(url: url))
            let hosts = origin.log.exchanges.flatMap { exchange in
                exchange.headerFields.filter { $0.name.canonicalName == "host" }
            }
            #expect(hosts.map(\.name.rawName) == ["Host"])
            let port = url.port.map { ":\($0)" } ?? ""
            #expect(hosts.map(\.value) == [(url.host(percentEncoded: false) ?? "") + port])
        }
    }

    @Test("A client certificate is sent on request, and servers whose certificate is not pinned receive no requests")
    func clientCertificate() async throws {
        let (server, client) = (try TestCertificate.make(), try TestCertificate.make(name: "DNS:client.example"))
        defer { [server, client].forEach { $0.remove() } }
        var identity = server.identity
        identity.clientTrustRoots = client.identity.certificate
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.trustRoots = .file(server.identity.certificate.path)
        tls.minimumTLSVersion = .tlsv1
        var withCertificate = tls
        withCertificate.certificateChain = try NIOSSLCertificate.fromPEMFile(client.identity.certificate.path)
            .map { .certificate($0) }
        withCertificate.privateKey = .privateKey(try NIOSSLPrivateKey(file: client.identity.key.path, format: .pem))
        var pinnedToOther = withCertificate
        pinnedToOther.trustRoots = .file(client.identity.certificate.path)
        let configurations = [(withCertificate, true), (tls, false), (pinnedToOther, false)]
        try await OriginServer.run(["/a": .pattern(1000)], identity: identity) { origin in
            for (configuration, isTrusted) in configurations {
                let upstream: any Upstream = .asyncHTTPClient(tlsConfiguration: configuration)
                if isTrusted {
                    let response = try await upstream.open(UpstreamRequest(url: origin.url("/a")))
                    var count = 0
                    for try await chunk in response.body { count += chunk.count }
                    #expect(count == 1000)
                } else {
                    await #expect(throws: UpstreamError.self) {
                        try await upstream.open(UpstreamRequest(url: origin.url("/a")))
                    }
                }
            }
            #expect(origin.log.exchanges.count == 1)
        }
    }

    @Test("E70: TLS versions before 1.2 are rejected")
    func outdatedTLS() async throws {
        let certificate = try TestCertificate.make()
        defer { certificate.remove() }
        var identity = certificate.identity
        identity.isOutdated = true
        try await OriginServer.run(["/a": .pattern(1000)], identity: identity) { origin in
            let upstreams: [any Upstream] = [
                AsyncHTTPClientUpstream(additionalTrustRoots: [identity.certificate]), URLSessionUpstream(),
            ]
            for upstream in upstreams {
                let error = await #expect(throws: UpstreamError.self, "\(type(of: upstream))") {
                    try await upstream.open(UpstreamRequest(url: origin.url("/a")))
                }
                #expect(error?.isTransient == false)
                guard upstream is AsyncHTTPClientUpstream else { continue }
                #expect(error?.code == .untrustedServer)
                #expect(error?.message.hasSuffix("is not trusted: it does not speak TLS 1.2 or later") == true)
            }
            #expect(origin.log.exchanges.isEmpty)
        }
    }

    @Test func `A certificate for another name is untrusted`() async throws {
        let certificate = try TestCertificate.make(name: "DNS:elsewhere.example")
        defer { certificate.remove() }
        try await OriginServer.run(["/a": .pattern(1000)], identity: certificate.identity) { origin in
            let upstream = AsyncHTTPClientUpstream(additionalTrustRoots: [certificate.identity.certificate])
            let error = await #expect(throws: UpstreamError.self) {
                try await upstream.open(UpstreamRequest(url: origin.url("/a")))
            }
            #expect(error?.code == .untrustedServer)
        }
    }

    @Test(.enabled(if: NginxOverTLS.isInstalled, "nginx is not installed"))
    func `HTTP/2 is used if the origin offers it`() async throws {
        let certificate = try TestCertificate.make()
        defer { certificate.remove() }
        let media = PatternBytes(length: 3_000_000)
        let upstream = AsyncHTTPClientUpstream(additionalTrustRoots: [certificate.identity.certificate])
        let nginx = try await NginxOverTLS.started(certificate, serving: media.data, upstream)
        defer { nginx.stop() }
        let request = UpstreamRequest(url: nginx.url, headerFields: [.range: "bytes=1000-2000999"])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    let response = try await upstream.open(request)
                    #expect(response.head.status == .partialContent)
                    var bytes: [UInt8] = []
                    for try await chunk in response.body { chunk.withUnsafeBytes { bytes += $0 } }
                    #expect(bytes.count == 2_000_000)
                    try media.verify(bytes, at: 1000)
                }
            }
            try await group.waitForAll()
        }
        #expect(try nginx.log() == Array(repeating: "HTTP/2.0 206", count: 4))
    }
}

/// A self-signed certificate, created by the `openssl` command.
struct TestCertificate {
    let identity: OriginServer.Identity
    let folder: URL

    static func make(name: String = "IP:127.0.0.1,DNS:localhost") throws -> TestCertificate {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("tls-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let identity = OriginServer.Identity(
            certificate: folder.appendingPathComponent("certificate.pem"), key: folder.appendingPathComponent("key.pem")
        )
        try run(
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
            "2", "-subj", "/CN=spool test", "-addext", "subjectAltName=\(name)", "-keyout", identity.key.path, "-out",
            identity.certificate.path)
        return TestCertificate(identity: identity, folder: folder)
    }

    func remove() { try? FileManager.default.removeItem(at: folder) }
}

/// nginx with HTTP/2, which the test kit's origin does not support.
private final class NginxOverTLS {
    static let isInstalled = FileManager.default.isExecutableFile(atPath: "/usr/sbin/nginx")

    let url: URL
    private let folder: URL
    /// The process, which runs in the foreground. A daemon would inherit the descriptor through which Foundation
    /// detects that the process has ended.
    private let process = Process()

    init(_ certificate: TestCertificate, serving data: Data) async throws {
        // The port was free a moment ago, but another process may take it.
        let finder = try await OriginServer.start([:])
        let port = finder.port
        await finder.stop()
        folder = certificate.folder
        url = try #require(URL(string: "https://127.0.0.1:\(port)/media"))
        try data.write(to: folder.appendingPathComponent("media"))
        let configuration = """
            daemon off; pid \(folder.path)/pid; error_log \(folder.path)/error.log; worker_processes 1;
            \(getuid() == 0 ? "user root;" : "")
            events {}
            http {
                log_format protocol "$server_protocol $status";
                access_log \(folder.path)/access.log protocol;
                client_body_temp_path \(folder.path); proxy_temp_path \(folder.path); fastcgi_temp_path \(folder.path);
                uwsgi_temp_path \(folder.path); scgi_temp_path \(folder.path);
                server {
                    listen 127.0.0.1:\(port) ssl http2; root \(folder.path);
                    ssl_certificate \(certificate.identity.certificate.path);
                    ssl_certificate_key \(certificate.identity.key.path);
                }
            }
            """
        let file = folder.appendingPathComponent("nginx.conf")
        try Data(configuration.utf8).write(to: file)
        process.executableURL = URL(fileURLWithPath: "/usr/sbin/nginx")
        process.arguments = ["-c", file.path, "-e", folder.path + "/error.log"]
        process.standardError = FileHandle.nullDevice
        try process.run()
    }

    /// Returns a server that listens. If another test takes the free port first, nginx exits, and another port is
    /// tried.
    static func started(
        _ certificate: TestCertificate, serving data: Data, _ upstream: any Upstream
    ) async throws -> NginxOverTLS {
        for _ in 0..<20 {
            let nginx = try await NginxOverTLS(certificate, serving: data)
            if await nginx.listens(upstream) { return nginx }
        }
        throw CommandFailure(command: "nginx", status: 1)
    }

    /// Waits until the server listens. Returns `false` if its process has ended.
    private func listens(_ upstream: any Upstream) async -> Bool {
        while process.isRunning, !Task.isCancelled {
            do {
                let response = try await upstream.open(UpstreamRequest(url: url.appendingPathComponent("ready")))
                for try await _ in response.body {}
                return true
            } catch {
                // The port is not open yet, or another process listens there without this certificate.
                await Task.yield()
            }
        }
        return false
    }

    /// Stops nginx and returns the protocol and status of each request for the media.
    func log() throws -> [String] {
        kill(process.processIdentifier, SIGQUIT)
        process.waitUntilExit()
        let text = try String(contentsOf: folder.appendingPathComponent("access.log"), encoding: .utf8)
        return text.split(separator: "\n").map { String($0) }.filter { !$0.hasSuffix("404") }
    }

    func stop() { process.terminate() }
}

/// Runs a command and waits until it ends. Throws an error if the command fails.
private func run(_ command: String...) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = command
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
        throw CommandFailure(command: command[0], status: process.terminationStatus)
    }
}

private struct CommandFailure: Error {
    var command: String
    var status: Int32
}
#endif

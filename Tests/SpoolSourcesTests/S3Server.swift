import Foundation
import HTTPTypes
import Spool
import SpoolHTTP
import SpoolSources
import SpoolTesting

/// The S3 servers that tests run. LocalStack checks signatures and their dates, and moto does not.
enum S3Server: String, CaseIterable, Sendable {
    case localstack
    case moto = "moto_server"

    var path: String? { RealServer.path(of: self == .localstack ? "localstack-supervisor" : rawValue) }
    static var present: [S3Server] { allCases.filter { $0.path != nil } }

    var checksSignatures: Bool { self == .localstack }

    func start(in scratch: ScratchDirectory) async throws -> RealServer {
        try await RealServer(path ?? "") { port in
            self == .moto ? ["-H", "127.0.0.1", "-p", "\(port)"] : []
        } environment: { port in
            guard self == .localstack else { return [:] }
            return [
                "GATEWAY_LISTEN": "127.0.0.1:\(port)", "SERVICES": "s3", "S3_SKIP_SIGNATURE_VALIDATION": "0",
                "DISABLE_EVENTS": "1", "SKIP_SSL_CERT_DOWNLOAD": "1", "DNS_ADDRESS": "0",
                "FILESYSTEM_ROOT": scratch.file("localstack"),
            ]
        }
    }

    /// Creates a bucket, or an object in a bucket. The request's signature is sufficient only for these servers.
    static func put(_ path: String, _ body: Data, at server: RealServer) async throws {
        var request = UpstreamRequest(url: server.url(path))
        request.method = .put
        request.headerFields[.contentLength] = "\(body.count)"
        request.headerFields[.authorization] =
            "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
        request.body = UpstreamBody(
            AsyncStream<Data> {
                $0.yield(body)
                $0.finish()
            })
        let response = try await HTTPUpstream.standard().open(request)
        guard response.head.status.code == 200 else { throw Refusal(status: response.head.status) }
    }

    /// The credentials that the servers accept.
    static let credentials = S3Bucket.Credentials(accessKeyID: "test", secretAccessKey: "test")

    struct Refusal: Error { var status: HTTPResponse.Status }
}

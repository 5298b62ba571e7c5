import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import SpoolTesting

/// A TLS server that closes each connection after its response without sending `close_notify`.
///
/// It sends the same bytes for each request.
final class AbruptTLSServer: Sendable {
    let port: Int
    private let channel: any Channel
    private let scratch: ScratchDirectory

    /// The PEM file of the certificate.
    var certificate: URL { URL(fileURLWithPath: scratch.file("certificate.pem")) }

    /// Starts a server with a new certificate.
    ///
    /// - Throws: ``Tool/Failed`` if the certificate can't be created, or another error if no port can be bound.
    init(response: [UInt8], openssl: Tool) async throws {
        scratch = try ScratchDirectory()
        let (certificate, key) = (scratch.file("certificate.pem"), scratch.file("key.pem"))
        let made = try await openssl.run([
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
            "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate,
        ])
        guard made.status == 0 else { throw Tool.Failed(description: made.text) }
        let chain = try NIOSSLCertificate.fromPEMFile(certificate).map { NIOSSLCertificateSource.certificate($0) }
        let context = try NIOSSLContext(
            configuration: .makeServerConfiguration(
                certificateChain: chain, privateKey: .privateKey(NIOSSLPrivateKey(file: key, format: .pem))))
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let closer = Closer()
                    try channel.pipeline.syncOperations.addHandlers([
                        closer, NIOSSLServerHandler(context: context), Responder(response, closer),
                    ])
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        port = channel.localAddress?.port ?? 0
    }

    func stop() async {
        try? await channel.close()  // A channel that cannot be closed is already closed.
    }

    /// A handler below TLS that closes the connection without ending the TLS session.
    private final class Closer: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private var context: ChannelHandlerContext?

        func handlerAdded(context: ChannelHandlerContext) { self.context = context }
        func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }
        func close() { context?.close(promise: nil) }
    }

    /// A handler that sends the response when a request has ended.
    private final class Responder: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        private let response: [UInt8]
        private let closer: Closer
        private var received: [UInt8] = []

        init(_ response: [UInt8], _ closer: Closer) { (self.response, self.closer) = (response, closer) }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            received += unwrapInboundIn(data).readableBytesView
            guard received.suffix(4) == [13, 10, 13, 10] else { return }
            received = []
            let written = context.eventLoop.makePromise(of: Void.self)
            written.futureResult.assumeIsolated().whenComplete { [closer] _ in closer.close() }
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: response)), promise: written)
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}

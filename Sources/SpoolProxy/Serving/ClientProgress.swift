#if Proxy
import NIOCore

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#elseif canImport(Glibc)
import Glibc
#endif

/// How many bytes have moved over a connection in both directions, as exactly as the system reports it.
///
/// Two values that differ show that the client took or sent something between them. A slow client takes minutes to empty the
/// socket's own buffer, of up to some megabytes, so the bytes that the socket took do not suffice: on Linux the bytes that the
/// client's system has acknowledged count, and on Apple platforms those that wait in the socket. Looking costs one system
/// call.
struct ClientProgress: Equatable {
    /// Body bytes of finished writes.
    private let sent: Int
    /// Bytes that the socket has not taken yet.
    private let buffered: Int
    /// Bytes of request bodies.
    private let received: Int
    private let socket: UInt64

    /// - Parameters:
    ///   - sent: Body bytes of finished writes.
    ///   - buffered: See ``bufferedBytes(of:)``.
    ///   - received: Bytes of request bodies.
    ///   - channel: The connection, on its event loop.
    init(sent: Int, buffered: Int, received: Int, channel: any Channel) {
        self.sent = sent
        self.buffered = buffered
        self.received = received
        socket = Self.socketProgress(of: channel)
    }

    /// The bytes that were written and that the socket has not taken yet. Costs no system call.
    ///
    /// - Parameter channel: The connection, on its event loop.
    static func bufferedBytes(of channel: any Channel) -> Int {
        // A channel that does not report it has closed.
        (try? channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
    }

    /// Changes when the client's system acknowledges bytes; 0 if the system does not report it.
    private static func socketProgress(of channel: any Channel) -> UInt64 {
        guard let socket = channel as? any SocketOptionProvider else { return 0 }
        var progress: UInt64 = 0
        #if os(Linux)
        // `tcpi_bytes_acked` of Linux's `struct tcp_info`, at byte 120; the structure of the C library ends before it.
        let info: EventLoopFuture<SIMD16<UInt64>> = socket.unsafeGetSocketOption(
            level: .tcp, name: NIOBSDSocket.Option(rawValue: TCP_INFO))
        info.assumeIsolated().whenSuccess { progress = $0[15] }
        #elseif canImport(Darwin)
        socket.getTCPConnectionInfo().assumeIsolated().whenSuccess { progress = UInt64($0.tcpi_snd_sbbytes) }
        #endif
        return progress
    }
}
#endif

#if Proxy
import NIOCore
import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#elseif canImport(Glibc)
import Glibc
#endif

/// The progress of a connection: the number of bytes transferred in both directions, as precisely as the system reports
/// it.
///
/// If two measurements differ, the client has received or sent bytes in the meantime. Counting the bytes that the
/// socket accepts is not enough, because a slow client can take minutes to empty a socket buffer of several megabytes.
/// On Linux, the bytes that the client's system has acknowledged are counted. On Apple platforms, the bytes that are
/// waiting in the socket are counted. Each measurement costs one system call.
struct ClientProgress: Equatable {
    /// The number of body bytes in finished writes.
    private let sent: Int
    /// The number of bytes that the socket has not accepted yet.
    private let buffered: Int
    /// The number of received bytes of request bodies.
    private let received: Int
    private let socket: UInt64

    /// - Parameters:
    ///   - sent: The number of body bytes in finished writes.
    ///   - buffered: See ``bufferedBytes(of:)``.
    ///   - received: The number of received bytes of request bodies.
    ///   - channel: The connection, on its event loop.
    init(sent: Int, buffered: Int, received: Int, channel: any Channel) {
        self.sent = sent
        self.buffered = buffered
        self.received = received
        socket = Self.socketProgress(of: channel)
    }

    /// Returns the number of written bytes that the socket has not accepted yet. This does not require a system call.
    ///
    /// - Parameter channel: The connection, on its event loop.
    static func bufferedBytes(of channel: any Channel) -> Int {
        // A channel that does not report the number is closed.
        (try? channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
    }

    /// Returns a value that changes when the client's system acknowledges bytes, or 0 if the system does not report
    /// this.
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

/// The state that a connection records about its client while a response is being sent.
struct ClientWatch {
    /// The client's progress at the start of the stall time, or `nil` if it has not been measured since.
    var progressSeen: ClientProgress?
    /// The state of a client that will send no more bytes, or `nil` if it may send more.
    var halfClosed: HalfClosedState?

    /// Whether the client will not send more bytes. Only sending bytes to the client reveals whether it is still
    /// receiving.
    var isInputClosed: Bool { halfClosed != nil }
}

/// The state of a half-closed connection, whose client sends no more bytes but may be waiting for a response.
///
/// A client that has closed the connection completely looks the same until bytes are sent to it. Therefore, the
/// response is cancelled if three checks in a row, about a second apart, find that no bytes have been sent.
struct HalfClosedState {
    private var sent = -1
    private var checks = 0

    /// Returns whether to cancel the response.
    ///
    /// - Parameters:
    ///   - sent: The number of body bytes that the socket has accepted.
    ///   - buffered: The number of bytes that the socket has not accepted yet.
    mutating func isOver(sent: Int, buffered: Int) -> Bool {
        checks = buffered == 0 && sent == self.sent ? checks + 1 : 0
        self.sent = sent
        return checks >= 3
    }
}

/// The number of body bytes of a connection that its socket has accepted.
final class SendProgress: Sendable {
    private let bytes = Atomic<Int>(0)

    /// The number of accepted bytes.
    var count: Int { bytes.load(ordering: .relaxed) }

    func sent(_ count: Int) { bytes.add(count, ordering: .relaxed) }
}
#endif

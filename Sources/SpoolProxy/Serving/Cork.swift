#if Proxy
import NIOCore

#if canImport(Musl)
import Musl
#elseif canImport(Glibc)
import Glibc
#endif

/// While it holds, what a connection writes leaves in full packets only: a head then goes with the first bytes of its body,
/// and its client is woken once (`TCP_CORK` of Linux's tcp(7); elsewhere it does nothing).
///
/// To be used on the channel's event loop, for as long as one call takes: what does not fill a packet waits meanwhile.
struct Cork {
    #if os(Linux)
    private let options: (any NIOSynchronousChannelOptions)?

    init(_ channel: any Channel) {
        options = channel.syncOptions
        set(1)
    }

    func release() { set(0) }

    private func set(_ value: Int) {
        // Where the system refuses, or the client has gone, packets leave as they come.
        try? options?.setOption(.tcpOption(.init(rawValue: TCP_CORK)), value: value)
    }
    #else
    init(_ channel: any Channel) {}

    func release() {}
    #endif
}
#endif

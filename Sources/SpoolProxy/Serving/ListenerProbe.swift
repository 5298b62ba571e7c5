#if Proxy
import Foundation
import NIOCore

/// Tells whether somebody listens at an address of this machine.
///
/// A system may take a suspended app's listening socket away, and no event tells of it: the socket looks as before.
enum ListenerProbe {
    /// Whether a connection can be made. It is made within this machine, which takes no time that anybody notices.
    static func isReachable(_ address: SocketAddress) -> Bool {
        #if os(Linux)
        let type = Int32(SOCK_STREAM.rawValue)
        #else
        let type = SOCK_STREAM
        #endif
        let descriptor = socket(Int32(address.protocol.rawValue), type, 0)
        // Without a descriptor nothing can be told, and no other socket could be made either.
        guard descriptor >= 0 else { return true }
        defer { close(descriptor) }
        guard fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0 else { return true }
        let code = address.withSockAddr { address, size in
            connect(descriptor, address, socklen_t(size)) == 0 ? 0 : errno
        }
        guard code == EINPROGRESS else { return code == 0 }
        var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        // One that takes longer is there, and busy.
        guard poll(&wanted, 1, 200) > 0 else { return true }
        var failure: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &failure, &size) == 0 && failure == 0
    }
}
#endif

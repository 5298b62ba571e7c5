import Foundation

/// The listening sockets of this process.
package enum ListeningSockets {
    /// Shuts down the listening sockets on a port, as the system does for a suspended app.
    ///
    /// - Returns: The number of sockets that were shut down.
    package static func shutDown(port: Int) -> Int {
        (Int32(0)..<4096).count { descriptor in
            var address = sockaddr_in()
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let isSocket = withUnsafeMutablePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &size) == 0 }
            }
            var listens: Int32 = 0
            var length = socklen_t(MemoryLayout<Int32>.size)
            guard isSocket, Int(UInt16(bigEndian: address.sin_port)) == port,
                getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) == 0, listens != 0
            else { return false }
            return shutdown(descriptor, Int32(SHUT_RDWR)) == 0
        }
    }
}

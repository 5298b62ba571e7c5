#if os(Linux)
import Foundation
import Glibc
import SpoolTesting
import Testing

@testable import SpoolStorage

/// Media bytes that `sendfile` has passed to a socket, and that the client has not received yet.
@Suite struct SentPagesTests {
    fileprivate enum Eviction: CaseIterable {
        case blocks
        /// Blocks of a file that was read from the disk. Read-ahead would cause zeros.
        case blocksAfterReading
        /// Blocks of a file that was read from the disk in advance.
        case blocksAfterPrefetch
        case truncation
    }

    @Test(
        "E515: bytes that wait in a client's socket stay correct when their blocks are evicted",
        arguments: Eviction.allCases)
    fileprivate func evicted(by eviction: Eviction) throws {
        let scratch = try ScratchDirectory()
        let file = try SystemFile(path: scratch.file("a.media"), access: .create, protection: .system)
        let count = 4 << 20
        try [UInt8](repeating: 0x55, count: count).withUnsafeBytes { try file.write($0, at: 0) }
        if eviction == .blocksAfterReading || eviction == .blocksAfterPrefetch {
            try file.synchronize()
            try #require(posix_fadvise(file.descriptor, 0, 0, POSIX_FADV_DONTNEED) == 0)
            if eviction == .blocksAfterPrefetch { file.prefetch(0..<Int64(count)) }
        }
        let (sender, receiver) = try Self.connectedSockets()
        defer { close(receiver) }
        var offset = off_t(0)
        while sendfile(sender, file.descriptor, &offset, count - Int(offset)) > 0 {}
        #expect(offset > 65536)
        if eviction == .truncation {
            try file.punchHole(65536..<Int64.max)
        } else {
            for start in stride(from: 0, to: Int64(count) - 65536, by: 65536) {
                try file.punchHole(start..<start + 65536)
            }
        }
        close(sender)
        var (received, zeros) = (0, 0)
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = read(receiver, &buffer, buffer.count)
            guard count > 0 else { break }
            received += count
            zeros += buffer[..<count].count { $0 == 0 }
        }
        #expect(received == Int(offset))
        #expect(zeros == 0)
    }

    /// Returns the two ends of a TCP connection. The first one does not wait when its buffer is full.
    private static func connectedSockets() throws -> (CInt, CInt) {
        let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        defer { close(listener) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let receiver = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        let isConnected = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 1) == 0 && getsockname(listener, $0, &length) == 0
                    && connect(receiver, $0, length) == 0
            }
        }
        try #require(isConnected)
        let sender = accept(listener, nil, nil)
        try #require(sender >= 0 && fcntl(sender, F_SETFL, O_NONBLOCK) == 0)
        return (sender, receiver)
    }
}
#endif

import Foundation
import Glibc
import Synchronization

/// A server based on plain sockets and threads, whose responses in each case depend on the seed of the case.
final class HostileServer: Sendable {
    let port: Int
    private let listener: Int32
    private let corpus: Corpus
    private let script = Mutex((dice: Dice(0), wildness: 0, number: 0))
    /// The number of requests in the current case.
    let requests = Mutex(0)

    init(_ corpus: Corpus) throws {
        self.corpus = corpus
        signal(SIGPIPE, SIG_IGN)
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = listener
        let isBound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(listener, pointer, size) == 0 && listen(listener, 512) == 0
                    && getsockname(listener, pointer, &size) == 0
            }
        }
        guard isBound else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        port = Int(UInt16(bigEndian: address.sin_port))
        Thread { self.accept() }.start()
    }

    /// Starts a case. On average, one in `wildness` responses is valid.
    func begin(_ seed: UInt64) {
        requests.withLock { $0 = 0 }
        script.withLock { $0 = (Dice(seed), Dice(seed).wildness, $0.number + 1) }
    }

    private func accept() {
        while true {
            let connection = Glibc.accept(listener, nil, nil)
            guard connection >= 0 else { continue }
            let thread = Thread { self.serve(connection) }
            thread.stackSize = 256 << 10
            thread.start()
        }
    }

    private func serve(_ connection: Int32) {
        var timeout = timeval(tv_sec: 2, tv_usec: 0)
        setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        var one: Int32 = 1
        setsockopt(connection, Int32(IPPROTO_TCP), TCP_NODELAY, &one, 4)
        var rest: [UInt8] = []
        while let request = receive(connection, &rest) {
            requests.withLock { $0 += 1 }
            let response = script.withLock { script in
                var dice = script.dice.fork()
                let isWild = !dice.chance(script.wildness)
                return HostileResponse(&dice, corpus, request: request, port: port, isWild: isWild)
            }
            var hasSent = true
            for piece in response.pieces where hasSent {
                hasSent = send(piece, to: connection)
                if piece.count < 500 { usleep(200) }
            }
            guard hasSent else { break }
            switch response.ending {
            case .next: continue
            case .keepOpen: _ = receive(connection, &rest)
            case .reset:
                var off = linger(l_onoff: 1, l_linger: 0)
                setsockopt(connection, SOL_SOCKET, SO_LINGER, &off, socklen_t(MemoryLayout<linger>.size))
            case .close: break
            }
            break
        }
        close(connection)
    }

    /// Returns the header section of a request; `nil` if the client disconnects or sends nothing for two seconds.
    private func receive(_ connection: Int32, _ rest: inout [UInt8]) -> String? {
        var buffer = [UInt8](repeating: 0, count: 16384)
        while true {
            if let end = rest.indices.dropLast(3).first(where: { rest[$0..<$0 + 4].elementsEqual([13, 10, 13, 10]) }) {
                defer { rest.removeFirst(end + 4) }
                return String(decoding: rest[..<end], as: UTF8.self)
            }
            let count = recv(connection, &buffer, buffer.count, 0)
            guard count > 0, rest.count < 1 << 20 else { return nil }
            rest += buffer[..<count]
        }
    }

    private func send(_ bytes: [UInt8], to connection: Int32) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { Glibc.send(connection, $0.baseAddress! + sent, bytes.count - sent, 0) }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }
}

extension Dice {
    /// The reciprocal of the probability of a valid response in a case.
    fileprivate var wildness: Int {
        var dice = self
        return dice.pick([1_000_000, 1_000_000, 4, 2, 2])
    }
}

import Foundation
import HTTPTypes
import Spool
import SpoolOrigin

extension UpstreamContract {
    /// Consumers that leave early.
    static let consumerCases: [Case] = [
        Case("releasing the iterator closes the request", ["/a": .pattern(1000, .stall(after: 400))]) { it, _ in
            let response = try await it.open("/a")
            try await readFirst(of: response.body)
            try checkEqual(try await it.log.first { $0.isOver }.ending, .abandoned, "ending")
            withExtendedLifetime(response) {}
        },
        Case("releasing a body that nobody read closes the request", ["/a": .pattern(1000, .stall(after: 400))]) {
            it, _ in
            try checkEqual(try await it.open("/a").head.status.code, 200, "status")
            try checkEqual(try await it.log.first { $0.isOver }.ending, .abandoned, "ending")
        },
        Case("cancelling before the head closes the request", ["/a": .pattern(10, .stall(after: nil))]) { it, _ in
            let task = Task { _ = try await it.open("/a") }
            _ = try await it.log.first { $0.isStalled }
            task.cancel()
            try await checkThrows([.cancelled]) { try await task.value }
            try checkEqual(try await it.log.first { $0.isOver }.ending, .abandoned, "ending")
        },
        Case("a request cancelled from the start gets no response", ["/a": .pattern(10)]) { it, _ in
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                _ = try await it.open("/a")
            }
            try await checkThrows([.cancelled]) { try await task.value }
        },
        Case("cancelling the task that iterates closes the request", ["/a": .pattern(1000, .stall(after: 400))]) {
            it, _ in
            let response = try await it.open("/a")
            let task = Task { _ = try await response.body.collect() }
            _ = try await it.log.first { $0.isStalled }
            task.cancel()
            try await checkThrows([.cancelled]) { try await task.value }
            try checkEqual(try await it.log.first { $0.isOver }.ending, .abandoned, "ending")
        },
    ]

    private static func readFirst(of body: UpstreamBody) async throws {
        var iterator = body.makeAsyncIterator()
        try check(try await iterator.next() != nil, "no chunk came")
    }

    /// How an upstream steers what it is sent.
    static let flowCases: [Case] = [
        Case(
            "an upstream holds the origin back while nobody asks for its body (B27)", needs: [.backPressure],
            ["/big": .pattern(256 << 20), "/small": .pattern(100_000)]
        ) { it, _ in
            let response = try await it.open("/big")
            var body = response.body.makeAsyncIterator()
            var position: Int64 = 0
            while position < 2 << 20, let chunk = try await body.next() {
                try chunk.withUnsafeBytes { try verify($0, PatternBytes(length: 256 << 20), at: position) }
                position += Int64(chunk.count)
            }
            // Time for hundreds of megabytes, if nothing held them.
            for _ in 0..<50 { _ = try await it.fetch("/small") }
            let sent = it.log.bytesSent("/big")
            try check(sent < 32 << 20, "\(sent) bytes were sent, \(position) were asked for")
            while position < 80 << 20, let chunk = try await body.next() {
                try chunk.withUnsafeBytes { try verify($0, PatternBytes(length: 256 << 20), at: position) }
                position += Int64(chunk.count)
            }
            try check(position >= 80 << 20, "the body ended at \(position)")
        },
        Case(
            "bytes are handed on as they come (B23)", needs: [.promptness],
            ["/a": .pattern(1000, .stall(after: 10), .drip(5, every: .zero))]
        ) { it, _ in
            var body = try await it.open("/a").body.makeAsyncIterator()
            var bytes: [UInt8] = []
            while bytes.count < 10, let chunk = try await body.next() { chunk.withUnsafeBytes { bytes += $0 } }
            try checkEqual(bytes, media.bytes(0..<10), "the bytes before the stall")
            it.release("/a")
            while let chunk = try await body.next() { chunk.withUnsafeBytes { bytes += $0 } }
            try checkEqual(bytes, media.bytes(0..<1000), "all bytes")
        },
        Case(
            "a connection is used again after a body was read to its end", needs: [.connections],
            ["/a": .pattern(1_000_000)]
        ) {
            it, _ in
            for index in 0..<20 as Range<Int64> {
                _ = try await it.fetch("/a", [.range: "bytes=\(index * 40_000)-\(index * 40_000 + 39_999)"])
            }
            try checkEqual(it.connectionCount(), 1, "connections")
        },
    ]

    private static func verify(_ bytes: UnsafeRawBufferPointer, _ media: PatternBytes, at offset: Int64) throws {
        try check(media.firstMismatch(in: bytes, at: offset) == nil, "a wrong byte after \(offset)")
    }
}

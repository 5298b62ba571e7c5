import Foundation
import HTTPTypes
import Spool
import SpoolOrigin

extension UpstreamContract {
    /// The cases in which an origin breaks connections, falls silent, or is unreachable.
    static let failureCases: [Case] = [
        Case(
            "if a body ends early, its bytes are delivered and then a lost connection is reported (A8)",
            ["/a": .pattern(1_000_000, .truncate(after: 300_000))]
        ) {
            it, _ in
            try await checkConnectionLost(it, bytes: 300_000)
        },
        Case(
            "a chunked body without its last chunk is reported as a lost connection (A9)", needs: [.cutsWithoutLength],
            ["/a": .pattern(1_000_000, .noLength(.chunked), .truncate(after: 300_000))]
        ) { it, _ in
            try await checkConnectionLost(it, bytes: 300_000)
        },
        Case(
            "a body shorter than Content-Length is reported as a lost connection",
            ["/a": .pattern(1000, .contentLength(5000))]
        ) { it, _ in
            try await checkConnectionLost(it, bytes: 1000)
        },
        Case(
            "a reset in the middle of a body is reported as a lost connection",
            ["/a": .pattern(1_000_000, .reset(after: 300_000))]
        ) { it, _ in
            let response = try await it.open("/a")
            try await checkThrows([.connectionLost]) { _ = try await response.body.collect() }
        },
        Case(
            "a connection that ends before the headers is a transient failure",
            ["/cut": .pattern(10, .truncate(after: nil)), "/reset": .pattern(10, .reset(after: nil))]
        ) { it, _ in
            for path in ["/cut", "/reset"] {
                try await checkThrows([.connectionLost, .unreachable]) { _ = try await it.open(path) }
            }
        },
        Case("a stopped origin is unreachable (B30)", ["/a": .pattern(10)]) { it, _ in
            await it.stop()
            do {
                _ = try await it.open("/a?secret=1")
                throw ContractFailure("a stopped origin responded")
            } catch let error as UpstreamError {
                try checkEqual(error.code, .unreachable, "code")
                try check(error.isTransient, "the error is not transient: \(error)")
                try check(!error.message.contains("secret"), "the query is in the message: \(error)")
                try check(error.message.contains("/a"), "the message does not name the URL: \(error)")
            }
        },
        Case(
            "an origin that does not respond times out (B29)", needs: [.timeouts],
            ["/a": .pattern(10, .stall(after: nil))]
        ) {
            it, settings in
            let response = Task { _ = try await it.open("/a") }
            _ = try await it.log.first { $0.isStalled }
            try await checkThrows([.timedOut]) { try await settings.clock.drive { try await response.value } }
            try checkEqual(try await it.log.first { $0.isOver }.ending, .clientDisconnected, "ending")
        },
        Case("a body that falls silent times out (B29)", needs: [.timeouts], ["/a": .pattern(1000, .stall(after: 400))])
        {
            it, settings in
            let response = try await it.open("/a")
            try await checkThrows([.timedOut]) {
                try await settings.clock.drive { _ = try await response.body.collect() }
            }
            try checkEqual(try await it.log.first { $0.isOver }.ending, .clientDisconnected, "ending")
        },
        Case(
            "a body without a reader does not time out (B27)", needs: [.timeouts],
            ["/a": .pattern(1000, .stall(after: 400))]
        ) {
            it, settings in
            let response = try await it.open("/a")
            var body = response.body.makeAsyncIterator()
            var bytes: [UInt8] = []
            while bytes.count < 400, let chunk = try await body.next() { chunk.withUnsafeBytes { bytes += $0 } }
            for _ in 0..<40 {
                try await settings.clock.waitForSleepers(1)
                settings.clock.advance(by: .seconds(3600))
            }
            it.release("/a")
            while let chunk = try await body.next() { chunk.withUnsafeBytes { bytes += $0 } }
            try checkEqual(bytes, media.bytes(0..<1000), "body")
        },
    ]

    /// Reads `/a`, and checks that it delivers `expected` correct bytes before the connection is lost.
    private static func checkConnectionLost(_ it: Fixture, bytes expected: Int) async throws {
        let response = try await it.open("/a")
        var bytes: [UInt8] = []
        let code: UpstreamError.Code?
        do {
            for try await chunk in response.body { chunk.withUnsafeBytes { bytes += $0 } }
            code = nil
        } catch let error as UpstreamError {
            code = error.code
            try check(error.isTransient, "the error is not transient: \(error)")
        }
        try checkEqual(code, .connectionLost, "code")
        try checkEqual(bytes.count, expected, "bytes before the end")
        try media.verify(bytes, at: 0)
    }
}

extension UpstreamContract {
    /// The cases in which the consumer stops reading early.
    static let consumerCases: [Case] = [
        Case("releasing the iterator closes the request", ["/a": .pattern(1000, .stall(after: 400))]) { it, _ in
            let response = try await it.open("/a")
            try await readFirst(of: response.body)
            try checkEqual(try await it.log.first { $0.isOver }.ending, .clientDisconnected, "ending")
            withExtendedLifetime(response) {}
        },
        Case("releasing an unread body closes the request", ["/a": .pattern(1000, .stall(after: 400))]) {
            it, _ in
            try checkEqual(try await it.open("/a").head.status.code, 200, "status")
            try checkEqual(try await it.log.first { $0.isOver }.ending, .clientDisconnected, "ending")
        },
        Case("cancelling before the headers ends the request", ["/a": .pattern(10, .stall(after: nil))]) { it, _ in
            let task = Task { _ = try await it.open("/a") }
            _ = try await it.log.first { $0.isStalled }
            task.cancel()
            try await checkThrows([.cancelled]) { try await task.value }
            try checkEqual(try await it.log.first { $0.isOver }.ending, .clientDisconnected, "ending")
        },
        Case("a request cancelled from the start receives no response", ["/a": .pattern(10)]) { it, _ in
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                _ = try await it.open("/a")
            }
            try await checkThrows([.cancelled]) { try await task.value }
        },
        Case("cancelling the task that reads the body closes the request", ["/a": .pattern(1000, .stall(after: 400))]) {
            it, _ in
            let response = try await it.open("/a")
            let task = Task { _ = try await response.body.collect() }
            _ = try await it.log.first { $0.isStalled }
            task.cancel()
            try await checkThrows([.cancelled]) { try await task.value }
            try checkEqual(try await it.log.first { $0.isOver }.ending, .clientDisconnected, "ending")
        },
    ]

    private static func readFirst(of body: UpstreamBody) async throws {
        var iterator = body.makeAsyncIterator()
        try check(try await iterator.next() != nil, "no chunk was received")
    }

    /// The cases for back-pressure, prompt delivery, and connection reuse.
    static let flowCases: [Case] = [
        Case(
            "the origin is paused while the response body is not read (B27)", needs: [.backPressure],
            ["/big": .pattern(256 << 20), "/small": .pattern(100_000)]
        ) { it, _ in
            let response = try await it.open("/big")
            var body = response.body.makeAsyncIterator()
            var position: Int64 = 0
            while position < 2 << 20, let chunk = try await body.next() {
                try chunk.withUnsafeBytes { try verify($0, PatternBytes(length: 256 << 20), at: position) }
                position += Int64(chunk.count)
            }
            // Without back-pressure, the origin would send hundreds of megabytes during these requests.
            for _ in 0..<50 { _ = try await it.fetch("/small") }
            let sent = it.log.bytesSent("/big")
            try check(sent < 32 << 20, "\(sent) bytes were sent, but \(position) were requested")
            while position < 80 << 20, let chunk = try await body.next() {
                try chunk.withUnsafeBytes { try verify($0, PatternBytes(length: 256 << 20), at: position) }
                position += Int64(chunk.count)
            }
            try check(position >= 80 << 20, "the body ended at byte \(position)")
        },
        Case(
            "bytes are delivered as they are received (B23)", needs: [.promptness],
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
            "a connection is reused after a body is read to its end", needs: [.connections],
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
        try check(media.firstMismatch(in: bytes, at: offset) == nil, "a wrong byte after offset \(offset)")
    }
}

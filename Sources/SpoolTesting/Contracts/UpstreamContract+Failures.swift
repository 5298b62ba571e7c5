import Foundation
import HTTPTypes
import Spool
import SpoolOrigin

extension UpstreamContract {
    /// Origins that break off, are silent or unreachable.
    static let failureCases: [Case] = [
        Case(
            "a body that ends early is a lost connection, after the bytes that came (A8)",
            ["/a": .pattern(1_000_000, .cut(after: 300_000))]
        ) {
            it, _ in
            try await checkConnectionLost(it, bytes: 300_000)
        },
        Case(
            "a chunked body without its last chunk is a lost connection (A9)", needs: [.cutsWithoutLength],
            ["/a": .pattern(1_000_000, .noLength(.chunked), .cut(after: 300_000))]
        ) { it, _ in
            try await checkConnectionLost(it, bytes: 300_000)
        },
        Case("a body shorter than Content-Length is a lost connection", ["/a": .pattern(1000, .contentLength(5000))]) {
            it, _ in
            try await checkConnectionLost(it, bytes: 1000)
        },
        Case("a reset inside a body is a lost connection", ["/a": .pattern(1_000_000, .reset(after: 300_000))]) {
            it, _ in
            let response = try await it.open("/a")
            try await checkThrows([.connectionLost]) { _ = try await response.body.collect() }
        },
        Case(
            "a connection that ends before the head is a failure that may pass",
            ["/cut": .pattern(10, .cut(after: nil)), "/reset": .pattern(10, .reset(after: nil))]
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
                try check(error.isTransient, "it may be back")
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
            try checkEqual(try await it.log.first { $0.isOver }.ending, .abandoned, "ending")
        },
        Case("a body that falls silent times out (B29)", needs: [.timeouts], ["/a": .pattern(1000, .stall(after: 400))])
        {
            it, settings in
            let response = try await it.open("/a")
            try await checkThrows([.timedOut]) {
                try await settings.clock.drive { _ = try await response.body.collect() }
            }
            try checkEqual(try await it.log.first { $0.isOver }.ending, .abandoned, "ending")
        },
        Case(
            "a body that nobody asks for does not time out (B27)", needs: [.timeouts],
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

    /// Reads `/a` and expects so many right bytes and then a lost connection.
    private static func checkConnectionLost(_ it: Fixture, bytes expected: Int) async throws {
        let response = try await it.open("/a")
        var bytes: [UInt8] = []
        let code: UpstreamError.Code?
        do {
            for try await chunk in response.body { chunk.withUnsafeBytes { bytes += $0 } }
            code = nil
        } catch let error as UpstreamError {
            code = error.code
            try check(error.isTransient, "the same request may succeed later: \(error)")
        }
        try checkEqual(code, .connectionLost, "code")
        try checkEqual(bytes.count, expected, "bytes before the end")
        try media.verify(bytes, at: 0)
    }
}

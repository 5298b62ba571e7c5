import Foundation
import SpoolTesting
import Testing

@testable import Spool

/// The text, the number and the properties of an error that an app can use.
@Suite("Errors", .timeLimit(.minutes(10)))
struct ErrorTextTests {
    @Test("Each error code has an alert text that ends with a period and contains neither a URL nor a number")
    func texts() {
        let errors: [any LocalizedError] =
            CacheError.Code.allCases.map { CacheError($0, "http://host/a, bytes 0 to 5: refused") }
            + [401, 404, 500].map { CacheError(.originErrorStatus, "http://host/a", status: $0) }
            + UpstreamError.Code.allCases.map { UpstreamError($0, "http://host/a refused") }
        for error in errors {
            let text = error.localizedDescription
            #expect(text == error.errorDescription && text.hasSuffix(".") && text.first?.isUppercase == true, "\(text)")
            #expect(!text.contains("host") && !text.contains { $0.isNumber }, "\(text)")
            #expect(error.failureReason == "\(error)")
            #expect(error.recoverySuggestion?.hasSuffix(".") ?? true)
        }
    }

    @Test("Error codes have stable numbers, which are also the codes of the bridged NSErrors")
    func numbers() {
        let cache = [
            "resourceChanged", "unsatisfiableRange", "originUnavailable", "originErrorStatus", "malformedResponse",
            "storage", "directoryInUse", "catalogTooNew", "catalogDamaged", "notStored", "incomplete",
            "invalidArgument", "closed", "capacityExceeded", "keyRequired", "wrongEncryptionKey",
        ]
        #expect(CacheError.Code.allCases.map(\.description) == cache)
        #expect(CacheError.Code.allCases.map(\.number) == Array(1...16))
        let upstream = [
            "unreachable", "timedOut", "connectionLost", "untrustedServer", "invalidRedirect", "malformedResponse",
            "cancelled", "other", "notPermitted", "networkNotAllowed",
        ]
        #expect(UpstreamError.Code.allCases.map(\.description) == upstream)
        #expect(UpstreamError.Code.allCases.map(\.number) == Array(1...10))

        let cause = UpstreamError(.timedOut, "http://host/a did not respond")
        let error = CacheError(.originUnavailable, "http://host/a: no response", underlying: cause) as NSError
        #expect(error.domain == "Spool.CacheError" && error.code == 3)
        #expect(error.localizedDescription == "The server can’t be reached.")
        #expect(error.localizedFailureReason == "http://host/a: no response")
        let beneath = error.userInfo[NSUnderlyingErrorKey] as? any Error
        #expect((beneath as? UpstreamError)?.code == .timedOut)
        #expect((cause as NSError).domain == "Spool.UpstreamError" && (cause as NSError).code == 2)
    }

    @Test("A reader's error contains its resource, the missing range and the origin's status")
    func fields() async throws {
        let stage = try MemoryStage(["/a": OriginResource(.pattern(PatternBytes(seed: 1, length: 200_000)))])
        try await stage.session { cache in
            let url = stage.url("/a")
            let media = cache.media(for: url)
            try await media.check(.bytes(0..<65536), PatternBytes(seed: 1, length: 200_000))
            stage.origin.update("/a") { $0.rules = [.always(.status(404))] }
            let refused = try #require(try await media.failure(.bytes(70_000..<80_000)))
            #expect(
                refused.code == .originErrorStatus && refused.httpStatus == 404 && refused.key == cache.key(for: url))
            #expect(refused.range?.contains(70_000) == true)
            let past = try #require(try await media.failure(.from(200_000)))
            #expect(past.code == .unsatisfiableRange && past.httpStatus == 416 && past.key == cache.key(for: url))
            #expect(past.range?.lowerBound == 200_000)
            let missing = await #expect(throws: CacheError.self) {
                try await cache.media(for: url).export(to: URL(fileURLWithPath: "/tmp/none"))
            }
            #expect(missing?.code == .incomplete && missing?.range?.lowerBound == 65536 && missing?.key == media.key)
        }
    }
}

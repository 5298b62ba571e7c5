import Foundation
import Spool
import SpoolStorage
import Testing

@testable import SpoolProxy

@Suite struct RequestFailureTests {
    @Test func `E311: a client gets an error's cause unless it names a file of the cache`() {
        let path = "/var/lib/spool/catalog.sqlite"
        for code in CacheError.Code.allCases where code != .originErrorStatus {
            let isOfFile = ![
                .resourceChanged, .unsatisfiableRange, .originUnavailable, .malformedResponse, .notStored, .incomplete,
                .invalidArgument, .capacityExceeded,
            ].contains(code)
            let failure = ResponseBuilder.failure(CacheError(code, isOfFile ? "“\(path)” failed" : "the cause"))
            #expect(failure.namesFiles == isOfFile, "\(code)")
            guard isOfFile else { continue }
            #expect(failure.status == 500 && failure.reason.contains(path))
            #expect(failure.withoutDetails.reason == "the cache could not create the response")
        }
        let other = RequestFailure(502, of: CocoaError(.fileNoSuchFile, userInfo: [NSFilePathErrorKey: path]))
        #expect(other.namesFiles && !other.withoutDetails.reason.contains(path))
    }
}

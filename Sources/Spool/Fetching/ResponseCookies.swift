import HTTPRanges
import HTTPTypes
import SpoolStorage
import Synchronization

/// The cookies of the last response of a resource, for the client that caused it.
///
/// Cookies that are not stored with a response belong to one client. The client needs no response of its own if it
/// receives them here. They are given out once, for a moment, and only for a source with the same header fields.
final class ResponseCookies: Sendable {
    private struct Received {
        var fields: HTTPFields
        var source: MediaSource
        var time: Duration
    }

    /// The time for which the client may take its cookies. It waits for the response, so it needs only a moment.
    static let patience = Duration.seconds(10)

    private let last = Mutex<Received?>(nil)

    /// Records the cookies of a response to a request of `source`, if it has any.
    func note(_ head: HTTPResponse, for source: MediaSource, at now: Duration) {
        let fields = EndToEndFields.cookies(of: head.headerFields)
        guard !fields.isEmpty else { return }
        last.withLock { $0 = Received(fields: fields, source: source, time: now) }
    }

    /// Takes the cookies. `nil` if there are none for this source.
    func take(for source: MediaSource, at now: Duration) -> HTTPFields? {
        last.withLock { last in
            guard let received = last, received.source.requestsAlike(source) else { return nil }
            last = nil
            return now - received.time <= Self.patience ? received.fields : nil
        }
    }
}

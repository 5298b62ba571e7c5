#if Proxy
import Foundation
import HTTPRanges
import Synchronization

/// The text of `Date`, made once a second.
final class DateText: Sendable {
    private let last = Mutex<(second: Int64, text: String)>((0, ""))
    private let now: @Sendable () -> Date

    init(now: @escaping @Sendable () -> Date = { Date() }) { self.now = now }

    /// Now, in whole seconds since 1970.
    var second: Int64 { Int64(now().timeIntervalSince1970) }

    /// Now, as header fields have it (RFC 9110 §5.6.7).
    var text: String {
        let second = second
        return last.withLock { last in
            if last.second != second { last = (second, HTTPDate(secondsSince1970: second).text) }
            return last.text
        }
    }
}
#endif

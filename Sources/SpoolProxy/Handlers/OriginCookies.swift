#if Proxy
import HTTPTypes
import Spool
import SpoolStreams
import Synchronization

/// The cookies set by origins for files that clients request by the origin's URL.
///
/// Requests for the same URL with the same header fields have the same cookies. An origin can't distinguish the
/// clients, because it never receives cookies from them. The files of a stream whose manifest has cookies get a prefix
/// from ``SourceRegistry``, and are not in this table.
final class OriginCookies: Sendable {
    private let jars: Mutex<BoundedTable<String, CookieJar>>

    /// - Parameter limit: The maximum number of files. At least the most recent half of them is remembered. The default
    ///   is 2048.
    init(limit: Int = 2048) { jars = Mutex(BoundedTable(count: limit)) }

    /// Returns a request with the cookies of earlier requests for the same file. Cookies in the response to the new
    /// request are added to these cookies.
    ///
    /// The following requests are not changed:
    /// - a request for the server's own origin, because its client sends cookies itself
    /// - a request with a source from ``SourceRegistry``, which has its own cookies
    /// - a request from the server's operator, because clients must not use the operator's session
    func adding(to call: OutgoingRequest) -> OutgoingRequest {
        guard !call.isReverse, !call.isForOperator, call.presentation == nil else { return call }
        let fields = call.fields.map { "\($0.name.canonicalName): \($0.value)" }.sorted()
        let name = ([HLSDelivery.withoutDirectives(call.url)] + fields).joined(separator: "\n")
        var call = call
        call.cookies = jars.withLock { jars in
            let jar = jars[name] ?? CookieJar()
            jars.record(jar, for: name, bytes: name.utf8.count)
            return jar
        }
        return call
    }
}
#endif

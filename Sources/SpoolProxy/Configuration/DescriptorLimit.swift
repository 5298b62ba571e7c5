#if Proxy
import Foundation

/// How many files and sockets the process may have open: each client is a socket.
package enum DescriptorLimit {
    /// Raises the soft limit to the hard one: the common soft limit is 1024.
    package static func raise() {
        guard var limit = current, limit.rlim_cur < limit.rlim_max else { return }
        limit.rlim_cur = limit.rlim_max
        // Where the system refuses, the server goes on with what it has.
        _ = setrlimit(kind, &limit)
    }

    /// How many of them clients' connections may take; the rest is for media files, the catalog and origins.
    static var forClients: Int {
        guard let limit = current else { return .max }
        let all = Int(clamping: limit.rlim_cur)
        return all - min(reserve, all / 4 * 3)
    }

    /// Media files that are open at once, and as many connections to origins, with some to spare.
    private static let reserve = 640

    private static var current: rlimit? {
        var limit = rlimit()
        return getrlimit(kind, &limit) == 0 ? limit : nil
    }

    #if os(Linux)
    private static let kind = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
    private static let kind = RLIMIT_NOFILE
    #endif
}
#endif

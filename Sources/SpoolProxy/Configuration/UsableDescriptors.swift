#if Proxy
import Foundation

/// The descriptors that the process may have open: each connection takes one.
enum UsableDescriptors {
    /// How many of them clients' connections may take; the rest is for media files, the catalog and origins.
    static var forClients: Int {
        var limit = rlimit()
        #if os(Linux)
        let kind = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
        let kind = RLIMIT_NOFILE
        #endif
        guard getrlimit(kind, &limit) == 0 else { return .max }
        let all = Int(clamping: limit.rlim_cur)
        return all - min(reserve, all / 4 * 3)
    }

    /// Media files that are open at once, and as many connections to origins, with some to spare.
    private static let reserve = 640
}
#endif

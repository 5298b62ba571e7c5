import Foundation

/// How many files and sockets the process may have open.
enum DescriptorLimit {
    /// Raises the soft limit to the hard one: each client is a socket, and the common soft limit is 1024.
    static func raise() {
        var limit = rlimit()
        #if os(Linux)
        let kind = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
        let kind = RLIMIT_NOFILE
        #endif
        guard getrlimit(kind, &limit) == 0, limit.rlim_cur < limit.rlim_max else { return }
        limit.rlim_cur = limit.rlim_max
        // Where the system refuses, the server goes on with what it has.
        _ = setrlimit(kind, &limit)
    }
}

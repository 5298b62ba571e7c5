#if Proxy
import Foundation
import NIOCore

/// The number of cores that the process may use. More event loops than cores would only compete with each other.
enum UsableCores {
    /// The number of cores, at least 1.
    static var count: Int {
        // If the system does not report the allowed cores, all cores are used.
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        // The core count also respects the quota of a control group.
        return max(min(allowed(in: status) ?? .max, System.coreCount), 1)
    }

    /// Returns the number of cores in `Cpus_allowed` of Linux's `/proc/self/status` (proc(5)).
    ///
    /// The value is a hexadecimal mask, in groups that are separated by commas.
    static func allowed(in status: String) -> Int? {
        guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("Cpus_allowed:") }) else {
            return nil
        }
        let mask = line.dropFirst("Cpus_allowed:".count).compactMap(\.hexDigitValue)
        return mask.isEmpty ? nil : mask.reduce(0) { $0 + $1.nonzeroBitCount }
    }
}

/// The limit on the number of files and sockets that the process can have open. Each client uses one socket.
package enum DescriptorLimit {
    /// Raises the soft limit, which is often 1024, to the hard limit.
    package static func raise() {
        guard var limit = current, limit.rlim_cur < limit.rlim_max else { return }
        limit.rlim_cur = limit.rlim_max
        // If the system rejects the change, the server works with the lower limit.
        _ = setrlimit(kind, &limit)
    }

    /// The maximum number of client connections. The other descriptors are for media files, the catalog and origins.
    static var forClients: Int {
        guard let limit = current else { return .max }
        let all = Int(clamping: limit.rlim_cur)
        return all - min(reserve, all / 4 * 3)
    }

    /// The number of descriptors for open media files, the same number of connections to origins, and a margin.
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

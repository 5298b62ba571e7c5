#if Proxy
import Foundation
import NIOCore

/// The cores that the process may use: two loops on one core would only wait for each other.
enum UsableCores {
    /// How many there are, at least one.
    static var count: Int {
        // Where the system does not say, all.
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        // A quota of a control group counts, too.
        return max(min(allowed(in: status) ?? .max, System.coreCount), 1)
    }

    /// What Linux says of a process (proc(5)): `Cpus_allowed`, a mask in hexadecimal digits, groups apart by commas.
    static func allowed(in status: String) -> Int? {
        guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("Cpus_allowed:") }) else {
            return nil
        }
        let mask = line.dropFirst("Cpus_allowed:".count).compactMap(\.hexDigitValue)
        return mask.isEmpty ? nil : mask.reduce(0) { $0 + $1.nonzeroBitCount }
    }
}
#endif

package import Foundation

extension CacheError {
    /// The error of a system call on a file.
    ///
    /// - Parameters:
    ///   - attempt: What failed, such as "could not be written".
    ///   - path: The file.
    ///   - code: The system's `errno`.
    ///   - cause: What that means here, where the system's own words would mislead.
    package static func system(
        _ attempt: String, path: String, errno code: Int32, cause: String? = nil
    ) -> CacheError {
        // strerror responds from constant strings for known codes, on glibc and Darwin alike: no data race to fear.
        let cause = cause ?? strerror(code).map { String(cString: $0) } ?? "error \(code)"
        let underlying: any Error =
            POSIXErrorCode(rawValue: code).map { POSIXError($0) }
            ?? NSError(domain: NSPOSIXErrorDomain, code: Int(code))
        return CacheError(.storage, "“\(path)” \(attempt): \(cause)", underlying: underlying)
    }

    /// The system's code of a failed file operation, such as `.ENOSPC` or `.ENOENT`.
    package var posixCode: POSIXErrorCode? { (underlying as? POSIXError)?.code }
}

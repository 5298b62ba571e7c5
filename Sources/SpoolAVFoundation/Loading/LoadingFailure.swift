#if canImport(AVFoundation) && !os(watchOS)
import Foundation
import Spool

/// Tells a player why a loading request failed, in the words of `NSURLErrorDomain`, which its own loading would use.
///
/// The cache's error lies beneath, under `NSUnderlyingErrorKey`; its sentence is the localised description.
enum LoadingFailure {
    /// The error for what a read of the cache threw.
    static func error(for cause: (any Error)?, url: URL) -> NSError {
        guard let cause else { return make(NSURLErrorUnknown, "loading failed", url) }
        return make(code(for: cause), String(describing: cause), url, underlying: cause)
    }

    /// The origin sent less than it had announced.
    static func endedEarly(at offset: Int64, _ url: URL) -> NSError {
        make(NSURLErrorNetworkConnectionLost, "the bytes ended at \(offset), before the resource does", url)
    }

    /// The player allows none of the types that the resource can be.
    static func noAllowedType(of url: URL) -> NSError {
        make(NSURLErrorCannotDecodeContentData, "the player allows none of the types that fit the resource", url)
    }

    /// Whether nobody was reached, or the connection broke: what may be tried again as long as anyone waits. An origin
    /// that has responded, whatever it was, has decided.
    static func isLossOfNetwork(_ error: any Error) -> Bool {
        guard let error = error as? CacheError, error.code == .originUnavailable, error.httpStatus == nil else {
            return false
        }
        return (error.underlying as? UpstreamError)?.isTransient ?? false
    }

    /// The code of `NSURLErrorDomain` that says it best.
    static func code(for cause: any Error) -> Int {
        if let cause = cause as? UpstreamError { return code(for: cause) }
        if cause is CancellationError { return NSURLErrorCancelled }
        guard let cause = cause as? CacheError else { return NSURLErrorUnknown }
        switch cause.code {
        case .originUnavailable:
            return (cause.underlying as? UpstreamError).map(code(for:))
                ?? (cause.httpStatus == nil ? NSURLErrorCannotConnectToHost : NSURLErrorBadServerResponse)
        case .originRefused: return code(forStatus: cause.httpStatus)
        case .malformedResponse: return NSURLErrorCannotParseResponse
        case .resourceChanged, .notStored, .incomplete: return NSURLErrorResourceUnavailable
        case .capacityExceeded: return NSURLErrorCannotWriteToFile
        case .storage, .directoryInUse, .catalogTooNew, .catalogDamaged: return NSURLErrorCannotOpenFile
        case .invalidArgument: return NSURLErrorUnsupportedURL
        case .closed: return NSURLErrorCancelled
        default: return NSURLErrorUnknown
        }
    }

    private static func code(for cause: UpstreamError) -> Int {
        switch cause.code {
        case .unreachable: NSURLErrorCannotConnectToHost
        case .timedOut: NSURLErrorTimedOut
        case .connectionLost: NSURLErrorNetworkConnectionLost
        case .untrusted: NSURLErrorServerCertificateUntrusted
        case .redirects: NSURLErrorHTTPTooManyRedirects
        case .cancelled: NSURLErrorCancelled
        default: NSURLErrorUnknown
        }
    }

    private static func code(forStatus status: Int?) -> Int {
        switch status {
        case 401, 407: NSURLErrorUserAuthenticationRequired
        case 403: NSURLErrorNoPermissionsToReadFile
        case 404, 410: NSURLErrorFileDoesNotExist
        default: NSURLErrorBadServerResponse
        }
    }

    private static func make(_ code: Int, _ sentence: String, _ url: URL, underlying: (any Error)? = nil) -> NSError {
        // No query: it may be a credential, and errors get into logs.
        let name = MediaSource(url: url).displayAddress
        var details: [String: Any] = [:]
        // The cache's own sentences name the resource already.
        details[NSLocalizedDescriptionKey] = underlying == nil ? "\(name): \(sentence)" : sentence
        details[NSUnderlyingErrorKey] = underlying
        return NSError(domain: NSURLErrorDomain, code: code, userInfo: details)
    }
}
#endif

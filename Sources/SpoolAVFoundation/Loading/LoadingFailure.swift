#if canImport(AVFoundation) && !os(watchOS)
import Foundation
import Spool

/// The conversion of errors to `NSURLErrorDomain` errors, which the player would report if it loaded the media itself.
///
/// `NSUnderlyingErrorKey` contains the cache's error, whose message is the localized description.
enum LoadingFailure {
    /// Returns the error for a failed read from the cache.
    static func error(for cause: (any Error)?, url: URL) -> NSError {
        guard let cause else { return make(NSURLErrorUnknown, "loading failed", url) }
        return make(code(for: cause), String(describing: cause), url, underlying: cause)
    }

    /// Returns the error for a response that ended early.
    static func endedEarly(at offset: Int64, _ url: URL) -> NSError {
        make(
            NSURLErrorNetworkConnectionLost, "the response ended at byte \(offset), before the end of the resource", url
        )
    }

    /// Returns the error for a resource that does not match any of the types that the player allows.
    static func noAllowedType(of url: URL) -> NSError {
        make(
            NSURLErrorCannotDecodeContentData, "the resource matches none of the content types that the player allows",
            url)
    }

    /// Returns whether an error means that there was no connection, or that the connection was lost. After such an
    /// error, a retry is useful as long as a client waits. A response from the origin is final.
    static func isLossOfNetwork(_ error: any Error) -> Bool {
        guard let error = error as? CacheError, error.code == .originUnavailable, error.httpStatus == nil else {
            return false
        }
        return (error.underlying as? UpstreamError)?.isTransient ?? false
    }

    /// Returns the reason why the player has to load the resource itself. Returns `nil` unless the error means that the
    /// transport can't load the resource, but the player may be able to.
    ///
    /// App Transport Security may allow an insecure URL for AVFoundation only (`NSAllowsArbitraryLoadsForMedia`). The
    /// player also accepts some responses that `URLSession` rejects.
    static func reasonToRedirect(_ error: (any Error)?) -> String? {
        guard let cause = (error as? CacheError)?.underlying as? UpstreamError else { return nil }
        switch cause.code {
        case .notPermitted: return "the system does not allow the cache to load this URL: \(cause.message)"
        case .malformedResponse, .other: return "the transport can't load this resource: \(cause.message)"
        default: return nil
        }
    }

    /// Returns the `NSURLErrorDomain` code that matches an error best.
    static func code(for cause: any Error) -> Int {
        if let cause = cause as? UpstreamError { return code(for: cause) }
        if cause is CancellationError { return NSURLErrorCancelled }
        guard let cause = cause as? CacheError else { return NSURLErrorUnknown }
        switch cause.code {
        case .originUnavailable:
            return (cause.underlying as? UpstreamError).map(code(for:))
                ?? (cause.httpStatus == nil ? NSURLErrorCannotConnectToHost : NSURLErrorBadServerResponse)
        case .originErrorStatus: return code(forStatus: cause.httpStatus)
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
        case .untrustedServer: NSURLErrorServerCertificateUntrusted
        case .networkNotAllowed: NSURLErrorDataNotAllowed
        case .notPermitted: NSURLErrorAppTransportSecurityRequiresSecureConnection
        case .invalidRedirect: NSURLErrorHTTPTooManyRedirects
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
        // Errors are logged, so the name does not include the query, which may be a credential.
        let name = MediaSource(url: url).redactedURL
        var details: [String: Any] = [:]
        // Messages from the cache already name the resource.
        details[NSLocalizedDescriptionKey] = underlying == nil ? "\(name): \(sentence)" : sentence
        details[NSUnderlyingErrorKey] = underlying
        return NSError(domain: NSURLErrorDomain, code: code, userInfo: details)
    }
}
#endif

extension CacheError {
    /// Returns the first error from a cache in a chain of underlying errors, or `nil` if there is none.
    package static func first(in error: (any Error)?) -> CacheError? {
        sequence(first: error) { ($0 as NSError?)?.userInfo[NSUnderlyingErrorKey] as? any Error }
            .lazy.compactMap { $0 as? CacheError }.first
    }
}

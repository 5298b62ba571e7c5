public import Foundation

/// Texts for people who watch a film, and numbers for statistics.
///
/// The texts are English; an app that speaks other languages chooses its own by ``CacheError/code``.
extension CacheError: LocalizedError, CustomNSError {
    /// What happened, in a sentence without an address or a number: for an alert.
    public var errorDescription: String? {
        switch code.name {
        case .resourceChanged: "The media changed while it was being played."
        case .unsatisfiableRange: "The media ends before the place that was asked for."
        case .originUnavailable: "The server can’t be reached."
        case .originRefused:
            switch httpStatus {
            case 401, 403, 407: "The server asks for a sign-in, or does not allow this media."
            case 404, 410: "The media is no longer on the server."
            default: "The server refused to send the media."
            }
        case .malformedResponse: "The server sent something that can’t be played."
        case .storage: "The device’s storage can’t be used."
        case .directoryInUse: "The stored media is in use by another app."
        case .catalogTooNew: "The stored media is of a newer version of this app."
        case .catalogDamaged: "The list of the stored media is damaged."
        case .notStored: "The media is not stored."
        case .incomplete: "The media is stored only in part."
        case .invalidArgument: "The media’s address, or a setting, can’t be used."
        case .closed: "The store of media was closed."
        case .capacityExceeded: "There is no room for more media."
        case .keyRequired, .keyRefused: "The stored media can’t be unlocked."
        }
    }

    /// The ``message``: resource, byte range and cause.
    public var failureReason: String? { message }

    /// What a person can do; nil where that is nothing but to tell whoever made the app.
    public var recoverySuggestion: String? {
        switch code.name {
        case .resourceChanged: "Play it again from the beginning."
        case .originUnavailable: "Check the network connection and try again."
        case .originRefused:
            switch httpStatus {
            case 401, 403, 407: "Sign in again."
            default: nil
            }
        case .malformedResponse: "If the network asks for a sign-in on a web page, sign in there and try again."
        case .storage: "Make room on the device and try again."
        case .directoryInUse: "Close the other app and try again."
        case .catalogTooNew: "Update this app."
        case .notStored, .incomplete: "Connect to the network to load it."
        case .capacityExceeded: "Remove stored media that is no longer wanted."
        case .unsatisfiableRange, .catalogDamaged, .invalidArgument, .closed, .keyRequired, .keyRefused: nil
        }
    }

    /// The domain of the error as an `NSError`.
    public static var errorDomain: String { "Spool.CacheError" }

    /// The code's number, the same in every version; docs/errors.md lists them.
    public var errorCode: Int { code.number }

    /// The cause and the ``message`` under Foundation's keys.
    public var errorUserInfo: [String: Any] { userInfo(underlying: underlying) }
}

extension LocalizedError {
    /// The error's texts and its cause, under Foundation's keys.
    package func userInfo(underlying: (any Error)?) -> [String: Any] {
        var details: [String: Any] = [:]
        details[NSLocalizedDescriptionKey] = errorDescription
        details[NSLocalizedFailureReasonErrorKey] = failureReason
        details[NSLocalizedRecoverySuggestionErrorKey] = recoverySuggestion
        details[NSUnderlyingErrorKey] = underlying
        return details
    }
}

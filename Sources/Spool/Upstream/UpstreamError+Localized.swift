public import Foundation

/// Texts for people who watch a film, and numbers for statistics.
///
/// The texts are English; an app that speaks other languages chooses its own by ``UpstreamError/code``.
extension UpstreamError: LocalizedError, CustomNSError {
    /// What happened, in a sentence without an address or a number: for an alert.
    public var errorDescription: String? {
        switch code.name {
        case .unreachable: "The server can’t be reached."
        case .timedOut: "The server did not respond in time."
        case .connectionLost: "The connection to the server was lost."
        case .untrusted: "The server can’t be trusted."
        case .redirects: "The media’s address leads nowhere."
        case .malformed: "The server’s response can’t be understood."
        case .cancelled: "The request was cancelled."
        case .failed: "The media could not be loaded."
        }
    }

    /// The ``message``: the address without its query, and the cause.
    public var failureReason: String? { message }

    /// What a person can do; nil where that is nothing but to tell whoever made the app.
    public var recoverySuggestion: String? {
        switch code.name {
        case .unreachable, .timedOut, .connectionLost: "Check the network connection and try again."
        case .untrusted: "Check the device’s date and time, and the network."
        case .redirects, .malformed, .cancelled, .failed: nil
        }
    }

    /// The domain of the error as an `NSError`.
    public static var errorDomain: String { "Spool.UpstreamError" }

    /// The code's number, the same in every version; docs/errors.md lists them.
    public var errorCode: Int { code.number }

    /// The cause and the ``message`` under Foundation's keys.
    public var errorUserInfo: [String: Any] { userInfo(underlying: underlying) }
}

public import Foundation

/// Why a source could not find an address or credentials: a sentence for people, without secrets.
public struct SourceError: Error, LocalizedError, CustomStringConvertible {
    /// What was asked for, where, and what came of it.
    public let message: String
    /// The HTTP status, where a response is the cause.
    public let httpStatus: Int?

    init(_ message: String, status: Int? = nil) {
        self.message = message
        self.httpStatus = status
    }

    /// The ``message``.
    public var description: String { message }
    /// The ``message``.
    public var errorDescription: String? { message }
}

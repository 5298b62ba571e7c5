// The names are Apple's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

public import Foundation

/// Why media cannot be played, in AVFoundation's own words.
public struct AVError: CustomNSError, LocalizedError, Hashable, Sendable {
    /// The reasons that the stand-in gives, with Apple's numbers.
    public enum Code: Int, Sendable, Hashable {
        /// Something else.
        case unknown = -11800
        /// The player's machinery is gone.
        case mediaServicesWereReset = -11819
        /// What was read is not what its format says.
        case fileFailedToParse = -11853
        /// No format that plays.
        case fileFormatNotRecognized = -11828
        /// What was read contradicts itself.
        case contentIsUnavailable = -11863
    }

    /// The reason.
    public let code: Code
    private let detail: String?

    /// An error for a reason.
    public init(_ code: Code) {
        self.init(code, detail: nil)
    }

    init(_ code: Code, detail: String?) {
        self.code = code
        self.detail = detail
    }

    /// `AVFoundationErrorDomain`.
    public static var errorDomain: String { AVFoundationErrorDomain }
    /// Apple's number.
    public var errorCode: Int { code.rawValue }
    /// One sentence, with what libmpv said if it said anything.
    public var errorDescription: String? {
        let reason =
            switch code {
            case .unknown: "The media could not be played"
            case .mediaServicesWereReset: "The player was closed"
            case .fileFailedToParse: "The media may be damaged"
            case .fileFormatNotRecognized: "The media's format is not recognised"
            case .contentIsUnavailable: "The media is not available"
            }
        return detail.map { "\(reason): \($0)" } ?? reason
    }
}

/// The domain of ``AVError``.
public let AVFoundationErrorDomain = "AVFoundationErrorDomain"

// The names are Apple's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

public import Foundation

/// Why media cannot be played, with AVFoundation's codes.
public struct AVError: CustomNSError, LocalizedError, Hashable, Sendable {
    /// The reasons that the stand-in gives, with Apple's numbers.
    public enum Code: Int, Sendable, Hashable, CaseIterable {
        /// Something else.
        case unknown = -11800
        /// The player's machinery is gone.
        case mediaServicesWereReset = -11819
        /// The bytes do not follow their format.
        case fileFailedToParse = -11829
        /// No format that plays.
        case fileFormatNotRecognized = -11828
        /// The bytes contradict each other.
        case contentIsUnavailable = -11863
        /// There is no picture at that time.
        case noImageAtTime = -11832
        /// No track of the kind that is needed.
        case noSourceTrack = -11869
        /// The pictures can't be decoded.
        case decodeFailed = -11821
        /// Not with this media.
        case operationNotSupportedForAsset = -11838
        /// The bytes did not come.
        case failedToLoadMediaData = -11849
        /// Called off.
        case operationCancelled = -11878
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
    /// The sentence, where Foundation looks for a description of a `CustomNSError`.
    public var errorUserInfo: [String: Any] { [NSLocalizedDescriptionKey: errorDescription ?? ""] }
    /// One sentence, with libmpv's message if there is one.
    public var errorDescription: String? {
        let reason =
            switch code {
            case .unknown: "the media could not be played"
            case .mediaServicesWereReset: "the player was closed"
            case .fileFailedToParse: "the media may be damaged"
            case .fileFormatNotRecognized: "the media's format is not recognised"
            case .contentIsUnavailable: "the media is not available"
            case .noImageAtTime: "the media has no picture at that time"
            case .noSourceTrack: "the media has no track of that kind"
            case .decodeFailed: "the media's pictures can't be decoded"
            case .operationNotSupportedForAsset: "that can't be done with this media"
            case .failedToLoadMediaData: "the media's bytes did not come in time"
            case .operationCancelled: "the operation was cancelled"
            }
        return detail.map { "\(reason): \($0)" } ?? reason
    }
}

/// The domain of ``AVError``.
public let AVFoundationErrorDomain = "AVFoundationErrorDomain"

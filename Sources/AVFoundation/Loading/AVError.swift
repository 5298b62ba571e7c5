// The names are Apple's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

public import Foundation

/// An error that states why media cannot be played, with a code from Apple's AVFoundation.
public struct AVError: CustomNSError, LocalizedError, Hashable, Sendable {
    /// The codes that this module uses, with Apple's numbers.
    public enum Code: Int, Sendable, Hashable, CaseIterable {
        /// An unknown error.
        case unknown = -11800
        /// The player's services are no longer available.
        case mediaServicesWereReset = -11819
        /// The bytes do not conform to the media format.
        case fileFailedToParse = -11829
        /// The media format cannot be played.
        case fileFormatNotRecognized = -11828
        /// The data ends before the stated length or duration.
        case contentIsUnavailable = -11863
        /// There is no image at the requested time.
        case noImageAtTime = -11832
        /// There is no track of the required kind.
        case noSourceTrack = -11869
        /// The video cannot be decoded.
        case decodeFailed = -11821
        /// The media does not support the operation.
        case operationNotSupportedForAsset = -11838
        /// The bytes were not received in time.
        case failedToLoadMediaData = -11849
        /// The operation was cancelled.
        case operationCancelled = -11878
    }

    /// The code of the error.
    public let code: Code
    private let detail: String?

    /// Creates an error with a code.
    public init(_ code: Code) {
        self.init(code, detail: nil)
    }

    init(_ code: Code, detail: String?) {
        self.code = code
        self.detail = detail
    }

    /// `AVFoundationErrorDomain`.
    public static var errorDomain: String { AVFoundationErrorDomain }
    /// Apple's number for the code.
    public var errorCode: Int { code.rawValue }
    /// The description, under the key that Foundation uses for the description of a `CustomNSError`.
    public var errorUserInfo: [String: Any] { [NSLocalizedDescriptionKey: errorDescription ?? ""] }
    /// A sentence that describes the error, with libmpv's message if there is one.
    public var errorDescription: String? {
        let reason =
            switch code {
            case .unknown: "the media could not be played"
            case .mediaServicesWereReset where detail != nil: "the player could not be started"
            case .mediaServicesWereReset: "the player was closed"
            case .fileFailedToParse: "the media may be damaged"
            case .fileFormatNotRecognized: "the media's format is not recognized"
            case .contentIsUnavailable: "the media is not available"
            case .noImageAtTime: "the media has no image at that time"
            case .noSourceTrack: "the media has no track of that kind"
            case .decodeFailed: "the media's video can't be decoded"
            case .operationNotSupportedForAsset: "the media does not support this operation"
            case .failedToLoadMediaData: "the media's data was not received in time"
            case .operationCancelled: "the operation was cancelled"
            }
        return detail.map { "\(reason): \($0)" } ?? reason
    }
}

/// The domain of ``AVError``.
public let AVFoundationErrorDomain = "AVFoundationErrorDomain"

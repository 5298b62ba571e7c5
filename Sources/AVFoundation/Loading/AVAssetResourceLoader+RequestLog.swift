// The request log is the stand-in's own: Apple's AVFoundation has no such API. Use it in tests and in tools that
// run on Linux, never in code that must also compile for Apple's platforms.

extension AVAssetResourceLoader {
    /// One loading request that the player made: what it asked for and what became of it. Linux only.
    package struct LoggedRequest: Sendable, Equatable {
        /// Information or bytes.
        package enum Kind: String, Sendable, Equatable {
            /// Type and length, with a probe of two bytes that nothing reads.
            case contentInformation
            /// Bytes of the resource.
            case data
        }

        /// Counts from 0 within an asset, in the order in which the player made them.
        package let id: Int
        /// Information or data.
        package let kind: Kind
        /// The first byte asked for.
        package let offset: Int64
        /// How many bytes; nil when the player did not know the length of the resource.
        package let length: Int64?
        /// Whether the request runs to the end of the resource, whatever ``length`` says.
        package let toEnd: Bool
        /// Bytes handed over that counted: not those after a cancel, or beyond the length.
        package internal(set) var bytes: Int64 = 0
        /// Whether the player called it off.
        package internal(set) var isCancelled = false
        /// Whether the delegate finished it, with or without an error.
        package internal(set) var isFinished = false
        /// The delegate's error, if it failed.
        package internal(set) var errorDescription: String?
    }

    /// Something that a delegate did against Apple's contract. Linux only; Apple's AVFoundation crashes, stalls or
    /// plays wrongly instead.
    package struct ContractViolation: Sendable, Equatable, CustomStringConvertible {
        /// Which rule was broken.
        package enum Kind: String, Sendable, Equatable, CaseIterable {
            /// Bytes handed over after the cancel was announced.
            case respondAfterCancel
            /// Bytes handed over after the request was finished.
            case respondAfterFinish
            /// Finished after the cancel was announced.
            case finishAfterCancel
            /// Finished a second time.
            case finishedTwice
            /// Finished with fewer bytes than asked for: the player takes it for the end of the resource.
            case shortFinish
            /// More bytes than asked for; what is beyond is dropped.
            case moreThanRequested
            /// The content type is not among those allowed.
            case contentTypeNotAllowed
            /// Bytes handed over before the content information was filled in.
            case dataBeforeInformation
            /// The information request finished well, with nothing filled in.
            case finishedWithoutInformation
            /// Taken on, then let go without an end: the player would wait for ever.
            case releasedUnfinished
        }

        /// Which rule was broken.
        package let kind: Kind
        /// The ``LoggedRequest/id`` of the request.
        package let requestID: Int
        /// The request's current offset at that moment.
        package let offset: Int64

        /// One line for a test's message.
        package var description: String { "\(kind.rawValue) (request \(requestID), at byte \(offset))" }
    }

    /// Every loading request that was made for the asset, oldest first. Linux only; from any thread.
    package var requestLog: [LoggedRequest] { core.requestLog }

    /// Everything that the delegate did against the contract, oldest first. Linux only; from any thread.
    package var contractViolations: [ContractViolation] { core.violations }

    /// The content types that requests made from now on allow, nil for all. Linux only, for tests: Apple's
    /// AVFoundation decides by itself.
    package var allowedContentTypes: [String]? {
        get { core.allowedContentTypes }
        set { core.allowedContentTypes = newValue }
    }
}

import Foundation

/// One message from a loading request to whoever made it.
enum LoadingRequestEvent: Sendable {
    /// The next bytes, on the delegate's thread.
    case data(Data)
    /// The end, with the content information if that was asked for.
    case finished(ContentInformation?)
    /// No more will come, and why. Not sent after a cancel.
    case failed(any Error)
}

import Foundation

/// What comes back from a loading request to the one that made it.
enum LoadingRequestEvent: Sendable {
    /// The next bytes, on the delegate's thread.
    case data(Data)
    /// The end, with what was said of the resource if that was asked for.
    case finished(ContentInformation?)
    /// No more will come, and why. Not sent after a cancel.
    case failed(any Error)
}

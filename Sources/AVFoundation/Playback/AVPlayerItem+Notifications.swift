// The names are Apple's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

public import Foundation

extension NSNotification.Name {
    /// The item has played to its end.
    public static let AVPlayerItemDidPlayToEndTime = NSNotification.Name("AVPlayerItemDidPlayToEndTimeNotification")
    /// The item cannot be played to its end; the error is under `AVPlayerItemFailedToPlayToEndTimeErrorKey`.
    ///
    /// The stand-in posts it also when an item fails before it was ready, since there is no key-value observing.
    public static let AVPlayerItemFailedToPlayToEndTime = NSNotification.Name(
        "AVPlayerItemFailedToPlayToEndTimeNotification")
    /// Media did not come in time. Posted when a playing item runs dry.
    public static let AVPlayerItemPlaybackStalled = NSNotification.Name("AVPlayerItemPlaybackStalledNotification")
    /// The item's time has jumped, after a seek.
    public static let AVPlayerItemTimeJumped = NSNotification.Name("AVPlayerItemTimeJumpedNotification")
    /// There is a new entry in the access log; never posted here.
    public static let AVPlayerItemNewAccessLogEntry = NSNotification.Name("AVPlayerItemNewAccessLogEntryNotification")
    /// There is a new entry in the error log; never posted here.
    public static let AVPlayerItemNewErrorLogEntry = NSNotification.Name("AVPlayerItemNewErrorLogEntryNotification")
    /// ``AVPlayerItem/loadedTimeRanges`` have changed. Linux only: what key-value observing of them is with Apple's.
    public static let AVPlayerItemLoadedTimeRangesDidChange = NSNotification.Name(
        "AVPlayerItemLoadedTimeRangesDidChangeNotification")
    /// The item's status has changed. Linux only: what key-value observing of `status` is with Apple's.
    public static let AVPlayerItemStatusDidChange = NSNotification.Name("AVPlayerItemStatusDidChangeNotification")
}

/// Where the notification of a failure keeps the error.
public let AVPlayerItemFailedToPlayToEndTimeErrorKey = "AVPlayerItemFailedToPlayToEndTimeErrorKey"

extension AVPlayerItem {
    /// The same as `.AVPlayerItemDidPlayToEndTime`.
    nonisolated public static let didPlayToEndTimeNotification = NSNotification.Name.AVPlayerItemDidPlayToEndTime
    /// The same as `.AVPlayerItemFailedToPlayToEndTime`.
    nonisolated public static let failedToPlayToEndTimeNotification =
        NSNotification.Name.AVPlayerItemFailedToPlayToEndTime
    /// The same as `.AVPlayerItemPlaybackStalled`.
    nonisolated public static let playbackStalledNotification = NSNotification.Name.AVPlayerItemPlaybackStalled
    /// The same as `.AVPlayerItemTimeJumped`.
    nonisolated public static let timeJumpedNotification = NSNotification.Name.AVPlayerItemTimeJumped

    /// Tells whoever listens, on the main thread.
    func post(_ name: NSNotification.Name, error: (any Error)? = nil) {
        NotificationCenter.default.post(
            name: name, object: self,
            userInfo: error.map { [AVPlayerItemFailedToPlayToEndTimeErrorKey: $0] })
    }
}

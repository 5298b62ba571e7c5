#if canImport(AVFoundation) && !os(watchOS) && !(os(iOS) || os(tvOS) || os(visionOS))
extension CachingPlayer {
    /// Returns no tokens, because there is no audio session.
    func listenToAudioSession() -> [NotificationToken] { [] }
}
#endif

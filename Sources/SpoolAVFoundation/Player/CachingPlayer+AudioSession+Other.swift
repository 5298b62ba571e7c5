#if canImport(AVFoundation) && !os(watchOS) && !(os(iOS) || os(tvOS) || os(visionOS))
extension CachingPlayer {
    /// There is no audio session to listen to.
    func listenToAudioSession() -> [NotificationToken] { [] }
}
#endif

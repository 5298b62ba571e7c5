#if canImport(AVFoundation) && (os(iOS) || os(tvOS) || os(visionOS))
import AVFoundation
import Foundation

/// The handling of interruptions, disconnected headphones, and media server resets. It follows Apple's articles
/// “Handling audio interruptions” and “Responding to audio route changes”.
extension CachingPlayer {
    /// Observes the audio session until the returned tokens are released.
    func listenToAudioSession() -> [NotificationToken] {
        [
            NotificationToken(AVAudioSession.interruptionNotification) { [weak self] notification in
                let type = (notification.userInfo?[AVAudioSessionInterruptionTypeKey] as? UInt)
                    .flatMap(AVAudioSession.InterruptionType.init)
                let options = AVAudioSession.InterruptionOptions(
                    rawValue: notification.userInfo?[AVAudioSessionInterruptionOptionKey] as? UInt ?? 0)
                Task { @MainActor in
                    if type == .began {
                        self?.interruptionBegan()
                    } else if type == .ended {
                        self?.interruptionEnded(mayResume: options.contains(.shouldResume))
                    }
                }
            },
            NotificationToken(AVAudioSession.routeChangeNotification) { [weak self] notification in
                let reason = (notification.userInfo?[AVAudioSessionRouteChangeReasonKey] as? UInt)
                    .flatMap(AVAudioSession.RouteChangeReason.init)
                guard reason == .oldDeviceUnavailable else { return }
                // Audio from headphones must not continue through the speaker.
                Task { @MainActor in self?.pause() }
            },
            NotificationToken(AVAudioSession.mediaServicesWereResetNotification) { [weak self] _ in
                Task { @MainActor in self?.mediaServerWasReset() }
            },
        ]
    }
}
#endif

#if canImport(AVFoundation) && !os(watchOS)
import AVFoundation

extension AVQueuePlayer {
    /// Takes over what an app has set of a player that this one takes the place of.
    func takeSettings(of former: AVQueuePlayer) {
        (volume, isMuted, defaultRate) = (former.volume, former.isMuted, former.defaultRate)
        automaticallyWaitsToMinimizeStalling =
            StallRecovery.existing(of: former)?.waitsForPlainItems ?? former.automaticallyWaitsToMinimizeStalling
        #if canImport(ObjectiveC)
        allowsExternalPlayback = former.allowsExternalPlayback
        appliesMediaSelectionCriteriaAutomatically = former.appliesMediaSelectionCriteriaAutomatically
        audiovisualBackgroundPlaybackPolicy = former.audiovisualBackgroundPlaybackPolicy
        #else
        headless = former.headless
        #endif
        #if os(iOS) || os(macOS) || os(tvOS)
        preventsDisplaySleepDuringVideoPlayback = former.preventsDisplaySleepDuringVideoPlayback
        #endif
    }
}
#endif

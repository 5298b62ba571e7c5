import AVFoundation
import OSLog

/// Tells the system that the app plays by itself: sound goes on in the background, and with the silent switch on.
func useAudioSession() {
    #if os(iOS)
    do {
        try AVAudioSession.sharedInstance().setCategory(.playback)
    } catch {
        Logger(subsystem: "SpoolPlayer", category: "audio").error("\(error.localizedDescription)")
    }
    #endif
}

import AVFoundation
import OSLog

/// Configures the audio session for playback that continues in the background and in silent mode.
func useAudioSession() {
    #if os(iOS)
    do {
        try AVAudioSession.sharedInstance().setCategory(.playback)
    } catch {
        Logger(subsystem: "SpoolPlayer", category: "audio").error("\(error.localizedDescription)")
    }
    #endif
}

import AVFoundation
import OSLog

/// Sets the audio session for playback, which continues in the background and with the silent switch on.
func useAudioSession() {
    #if os(iOS)
    do {
        try AVAudioSession.sharedInstance().setCategory(.playback)
    } catch {
        Logger(subsystem: "SpoolPlayer", category: "audio").error("\(error.localizedDescription)")
    }
    #endif
}

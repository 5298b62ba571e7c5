import Foundation

/// Options for playing an item: the libmpv options that follow from headless mode, rate and volume.
struct PlaybackOptions: Sendable, Equatable {
    var headless: AVPlayer.HeadlessMode?
    /// The outputs that the machine has, where it is not headless.
    var outputs = MachineOutputs()
    var isCustomStream: Bool
    /// Whether libmpv opens a file of this machine.
    var isFile = false
    var userAgent: String?
    /// Whether it is opened to find out its tracks.
    var findsTracks = false
    /// What to open it for, if it is opened for single pictures.
    var pictures: Pictures?
    /// Whether a seek is to be found by reading up to it rather than by estimate, where a format has no index.
    var isPrecise = false
    /// Seconds that the demuxer reads ahead; 0 lets the stand-in choose.
    var forwardBufferDuration: Double = 0

    struct Pictures: Sendable, Equatable {
        /// Whether they are turned as the media says.
        var isRotated: Bool
    }

    /// Options to set before the handle starts, in order.
    ///
    /// The demuxer reads a few seconds ahead and no more, so that the loading requests look like a streaming
    /// player's and not like a download: libmpv's own cache is off for custom URLs, whose read-ahead is the
    /// stream's buffer, and bounded to 16 MiB for `http(s)`.
    var initial: [(name: String, value: String)] {
        var options: [(name: String, value: String)] = [
            // A server that waits for its origin is waited for.
            ("network-timeout", "0"),
            ("config", "no"), ("terminal", "no"), ("load-scripts", "no"), ("ytdl", "no"), ("idle", "yes"),
            ("pause", "yes"),
            ("keep-open", "always"), ("keep-open-pause", "no"), ("audio-display", "no"), ("sub-auto", "no"),
            ("audio-file-auto", "no"), ("hr-seek", "yes"), ("demuxer-max-back-bytes", "0"),
            ("demuxer-readahead-secs", String(readAheadSeconds)),
            ("cache-secs", String(forwardBufferDuration > 0 ? min(forwardBufferDuration, 3600) : 10)),
            ("demuxer-max-bytes", isCustomStream ? "4MiB" : "16MiB"), ("cache", isCustomStream ? "no" : "auto"),
        ]
        options += MediaFormats.options(
            mayReachNetwork: !isCustomStream && !isFile,
            // As with Apple's, a seek in an mp3 goes to where its bytes should be; else libmpv reads all between.
            demuxer: isPrecise ? [] : ["fflags=+fastseek"])
        if let pictures {
            options += [("aid", "no"), ("sid", "no"), ("osd-level", "0")]
            options.append(("video-rotate", pictures.isRotated ? "0" : "no"))
        }
        if let userAgent { options.append(("user-agent", userAgent)) }
        if let headless {
            options += [("vo", "null"), ("ao", "null"), ("audio-pitch-correction", "no")]
            options += [("input-default-bindings", "no"), ("osc", "no")]
            // The sound buffer counts by the speed: 0.2 s would be 20 s of media at a speed of 100.
            let buffer = String(max(0.2 / max(headless.speed ?? 1, 1), 0.01))
            options += [("audio-buffer", buffer), ("ao-null-buffer", buffer), ("ao-null-outburst", "256")]
            if headless.speed == nil { options += [("ao-null-untimed", "yes"), ("untimed", "yes")] }
        } else {
            options += [
                ("vo", outputs.hasScreen ? "gpu,x11,null" : "null"),
                ("ao", outputs.hasSound ? "pipewire,pulse,alsa,null" : "null"),
                // Keys, mouse and controller of the window are libmpv's usual ones.
                ("input-default-bindings", "yes"), ("input-vo-keyboard", "yes"), ("osc", "yes"),
            ]
        }
        return options
    }

    private var readAheadSeconds: Double {
        if pictures != nil { return 0 }
        return forwardBufferDuration > 0 ? min(forwardBufferDuration, 3600) : 2
    }

    /// How fast libmpv is to play for a player's rate.
    func speed(rate: Float) -> Double {
        min(max(Double(abs(rate)) * (headless?.speed ?? 1), 0.01), 100)
    }
}

/// Whether a machine can show and be heard. Without, libmpv would look for devices and write of its failure.
struct MachineOutputs: Sendable, Equatable {
    var hasScreen = true
    var hasSound = true

    init() {}

    /// The outputs that environment variables and existing files point to: an X11 or Wayland session; a PulseAudio or
    /// PipeWire server, or a sound card.
    init(environment: [String: String], fileExists: (String) -> Bool) {
        func isSet(_ name: String) -> Bool { environment[name].map { !$0.isEmpty } ?? false }
        hasScreen = isSet("DISPLAY") || isSet("WAYLAND_DISPLAY")
        let runtime = environment["XDG_RUNTIME_DIR"] ?? ""
        let servers = runtime.isEmpty ? [] : ["\(runtime)/pipewire-0", "\(runtime)/pulse/native"]
        hasSound = isSet("PULSE_SERVER") || (servers + ["/dev/snd/timer"]).contains(where: fileExists)
    }

    /// This machine's.
    static let ofThisMachine = MachineOutputs(
        environment: ProcessInfo.processInfo.environment,
        fileExists: { FileManager.default.fileExists(atPath: $0) })
}

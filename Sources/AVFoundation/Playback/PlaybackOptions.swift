import Foundation

/// The options for playing an item, and the libmpv options for headless mode and rate.
struct PlaybackOptions: Sendable, Equatable {
    var headless: AVPlayer.HeadlessMode?
    /// The outputs of the machine, which are used unless playback is headless.
    var outputs = MachineOutputs()
    var isCustomStream: Bool
    /// Whether libmpv opens a local file.
    var isFile = false
    var userAgent: String?
    /// Whether the media is opened only to find its tracks.
    var findsTracks = false
    /// The options for generating still images, or `nil` for playback.
    var pictures: Pictures?
    /// Whether a seek in a format without an index reads up to the target, instead of estimating the target's position.
    var isPrecise = false
    /// The number of seconds that the demuxer reads ahead. 0 means the default.
    var forwardBufferDuration: Double = 0

    struct Pictures: Sendable, Equatable {
        /// Whether images are rotated as the media specifies.
        var isRotated: Bool
    }

    /// The options to set before the handle starts, in order.
    ///
    /// The demuxer reads only a few seconds ahead, so that the loading requests resemble those of a streaming player.
    /// The cache of libmpv is disabled for custom URLs, because the stream buffers the bytes that are read ahead. For
    /// `http(s)`, the cache is limited to 16 MiB.
    var initial: [(name: String, value: String)] {
        var options: [(name: String, value: String)] = [
            // The timeout is disabled, because a server may have to wait for its origin.
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
            // As with Apple's player, a seek in an MP3 file goes to the estimated position. Otherwise, libmpv would
            // read all bytes up to the target.
            demuxer: isPrecise ? [] : ["fflags=+fastseek"])
        if let pictures {
            options += [("aid", "no"), ("sid", "no"), ("osd-level", "0")]
            options.append(("video-rotate", pictures.isRotated ? "0" : "no"))
        }
        if let userAgent { options.append(("user-agent", userAgent)) }
        if let headless {
            options += [("vo", "null"), ("ao", "null"), ("audio-pitch-correction", "no")]
            options += [("input-default-bindings", "no"), ("osc", "no")]
            // A high speed shortens the audio buffer, because 0.2 s of output would be 20 s of media at a speed of 100.
            let buffer = String(max(0.2 / max(headless.speed ?? 1, 1), 0.01))
            options += [("audio-buffer", buffer), ("ao-null-buffer", buffer), ("ao-null-outburst", "256")]
            if headless.speed == nil { options += [("ao-null-untimed", "yes"), ("untimed", "yes")] }
        } else {
            options += [
                ("vo", outputs.hasScreen ? "gpu,x11,null" : "null"),
                ("ao", outputs.hasSound ? "pipewire,pulse,alsa,null" : "null"),
                // The window uses libmpv's default key bindings, mouse actions and on-screen controller.
                ("input-default-bindings", "yes"), ("input-vo-keyboard", "yes"), ("osc", "yes"),
            ]
        }
        return options
    }

    private var readAheadSeconds: Double {
        if pictures != nil { return 0 }
        return forwardBufferDuration > 0 ? min(forwardBufferDuration, 3600) : 2
    }

    /// Returns libmpv's speed for a player's rate.
    func speed(rate: Float) -> Double {
        min(max(Double(abs(rate)) * (headless?.speed ?? 1), 0.01), 100)
    }
}

/// The outputs of a machine: screen and sound. They are determined in advance, because libmpv would otherwise search
/// for devices and log failures.
struct MachineOutputs: Sendable, Equatable {
    var hasScreen = true
    var hasSound = true

    init() {}

    /// Determines the outputs from environment variables and files.
    ///
    /// Output to a screen requires an X11 or Wayland session. Sound requires a PulseAudio or PipeWire server, or a
    /// sound card.
    init(environment: [String: String], fileExists: (String) -> Bool) {
        func isSet(_ name: String) -> Bool { environment[name].map { !$0.isEmpty } ?? false }
        hasScreen = isSet("DISPLAY") || isSet("WAYLAND_DISPLAY")
        let runtime = environment["XDG_RUNTIME_DIR"] ?? ""
        let servers = runtime.isEmpty ? [] : ["\(runtime)/pipewire-0", "\(runtime)/pulse/native"]
        hasSound = isSet("PULSE_SERVER") || (servers + ["/dev/snd/timer"]).contains(where: fileExists)
    }

    /// The outputs of this machine.
    static let ofThisMachine = MachineOutputs(
        environment: ProcessInfo.processInfo.environment,
        fileExists: { FileManager.default.fileExists(atPath: $0) })
}

/// The formats that libmpv may detect, and the resources that it may open for them.
///
/// By default, libmpv detects playlists, edit lists and scripts of many kinds, and opens the files or URLs that they
/// contain. Media from an unknown source could exploit this. With these options, libmpv detects only media containers,
/// and libavformat does not open further files. HLS is allowed only over HTTP, and may refer only to HTTP URLs.
private enum MediaFormats {
    /// libavformat's demuxers that read only one file, without references.
    static let containers = [
        "mov", "mp3", "aac", "wav", "w64", "aiff", "caf", "flac", "ogg", "matroska", "mpegts", "mpeg", "avi", "ac3",
        "eac3", "au", "amr",
    ]

    /// Returns the options that restrict libmpv to these formats.
    ///
    /// - Parameters:
    ///   - mayReachNetwork: Whether libmpv itself loads an `http(s)` URL.
    ///   - demuxer: Additional options for libavformat's demuxers.
    static func options(mayReachNetwork: Bool, demuxer: [String]) -> [(name: String, value: String)] {
        let formats = containers + (mayReachNetwork ? ["hls"] : [])
        // `data` URLs do not open files or connections. An empty list would mean libavformat's default protocols.
        let protocols = mayReachNetwork ? ["http", "https", "httpproxy", "tcp", "tls", "crypto", "data"] : ["data"]
        // Without these options, libavformat waits for the headers of the next segment before it reads an available
        // one. It also ends a live stream after 3 to 100 reloads without a new segment.
        let segments =
            mayReachNetwork ? ["http_multiple=0", "max_reload=\(Int32.max)", "m3u8_hold_counters=\(Int32.max)"] : []
        let lists = [
            "protocol_whitelist=[\(protocols.joined(separator: ","))]",
            "format_whitelist=[\(formats.joined(separator: ","))]",
        ]
        return [
            // libmpv's own demuxers are not used. They read playlists, edit lists, cue sheets, archives and Matroska.
            ("demuxer", "lavf"), ("demuxer-lavf-o", (demuxer + segments + lists).joined(separator: ",")),
            // The segments of an HLS stream are also references.
            ("access-references", mayReachNetwork ? "yes" : "no"), ("ordered-chapters", "no"),
            ("load-unsafe-playlists", "no"), ("autoload-files", "no"), ("cover-art-auto", "no"),
        ]
    }
}

import Foundation
import Testing

@testable import AVFoundation

@Suite("Times, seeks and options")
struct PlayerPartsTests {
    @Test("A time is a number of seconds or a special value, such as indefinite")
    func times() {
        #expect(CMTime(seconds: 1.5, preferredTimescale: 600) == CMTime(value: 900, timescale: 600))
        #expect(CMTime(value: 900, timescale: 600).seconds == 1.5)
        #expect(CMTime.zero.seconds == 0 && CMTime.zero.isNumeric)
        #expect(CMTime.indefinite.seconds.isNaN && CMTime.indefinite.isIndefinite && !CMTime.indefinite.isNumeric)
        #expect(!CMTime.invalid.isValid && !CMTime(value: 1, timescale: 0).isValid)
        #expect(CMTime(seconds: .nan, preferredTimescale: 600) == .invalid)
        #expect(CMTime(seconds: .infinity, preferredTimescale: 600) == .positiveInfinity)
        #expect(CMTime(seconds: -1e300, preferredTimescale: 600) == .negativeInfinity)
        #expect(CMTime.negativeInfinity < .zero && .zero < CMTime.positiveInfinity)
        #expect(CMTime(value: 1, timescale: 2) + CMTime(value: 1, timescale: 4) == CMTime(value: 3, timescale: 4))
        #expect((CMTime.zero - .indefinite).isIndefinite)
        let stretch = CMTimeRange(start: .zero, duration: CMTime(value: 2, timescale: 1))
        #expect(stretch.containsTime(CMTime(value: 1, timescale: 1)) && !stretch.containsTime(stretch.end))
    }

    @Test("A seek finishes when playback restarts after the demuxer has started the seek")
    func seekArrives() {
        var tracker = SeekTracker()
        #expect(tracker.sent(1) == nil)
        #expect(tracker.restarted() == nil)
        tracker.reachedDemuxer()
        #expect(tracker.restarted() == nil)
        #expect(tracker.noted(1) == true)
        tracker.reachedDemuxer()
        #expect(tracker.restarted() == 1)
        #expect(tracker.pending == nil)
    }

    @Test("A later seek replaces an earlier seek, and a rejected seek is removed")
    func seekReplaced() {
        var tracker = SeekTracker()
        _ = tracker.sent(1)
        #expect(tracker.sent(2) == 1)
        #expect(tracker.noted(1) == false)
        #expect(tracker.noted(2) == true)
        #expect(tracker.refused(1) == false)
        #expect(tracker.refused(2) == true)
        _ = tracker.sent(3)
        #expect(tracker.cancel() == 3)
        #expect(tracker.pending == nil)
    }

    @Test("Headless mode disables output; otherwise, machines without a screen or sound device fall back to no output")
    func options() {
        func value(_ name: String, _ options: PlaybackOptions) -> String? {
            options.initial.last { $0.name == name }?.value
        }
        let headless = PlaybackOptions(headless: .init(speed: 30), isCustomStream: true)
        #expect(value("vo", headless) == "null" && value("ao", headless) == "null")
        #expect(value("untimed", headless) == nil && value("cache", headless) == "no")
        #expect(headless.speed(rate: 1) == 30 && headless.speed(rate: 2) == 60 && headless.speed(rate: 9) == 100)
        let untimed = PlaybackOptions(headless: .untimed, isCustomStream: true)
        #expect(value("untimed", untimed) == "yes" && value("ao-null-untimed", untimed) == "yes")
        let shown = PlaybackOptions(headless: nil, isCustomStream: false, userAgent: "Spool/1")
        #expect(value("vo", shown)?.hasSuffix(",null") == true && value("ao", shown)?.hasSuffix(",null") == true)
        for name in ["input-default-bindings", "input-vo-keyboard", "osc"] { #expect(value(name, shown) == "yes") }
        #expect(value("input-default-bindings", headless) == "no" && value("osc", headless) == "no")
        let bare = MachineOutputs(environment: ["XDG_RUNTIME_DIR": "/run/user/1"], fileExists: { _ in false })
        let silent = PlaybackOptions(headless: nil, outputs: bare, isCustomStream: true)
        #expect(value("vo", silent) == "null" && value("ao", silent) == "null")
        let desktop = MachineOutputs(
            environment: ["DISPLAY": ":0", "XDG_RUNTIME_DIR": "/run/user/1"],
            fileExists: { $0 == "/run/user/1/pipewire-0" })
        #expect(desktop.hasScreen && desktop.hasSound)
        #expect(value("user-agent", shown) == "Spool/1" && shown.speed(rate: 1.5) == 1.5)
    }

    @Test("libavformat does not log to standard error, even after the first libmpv handle is destroyed")
    func quiet() throws {
        let first = try #require(MPVHandle(options: []))
        let second = try #require(MPVHandle(options: []))
        first.destroy()
        defer { second.destroy() }
        let libmpv = try #require(
            ["2", "1"].lazy.compactMap { dlopen("libmpv.so.\($0)", RTLD_NOW | RTLD_NOLOAD) }.first)
        defer { dlclose(libmpv) }
        let symbol = try #require(dlsym(libmpv, "av_log_get_level"))
        #expect(unsafeBitCast(symbol, to: (@convention(c) () -> Int32).self)() == -8)
    }

    @Test("AVPLAYER_HEADLESS selects the headless mode and its speed")
    func environment() {
        #expect(AVPlayer.HeadlessMode.fromEnvironment([:]) == nil)
        #expect(AVPlayer.HeadlessMode.fromEnvironment(["AVPLAYER_HEADLESS": ""]) == nil)
        #expect(AVPlayer.HeadlessMode.fromEnvironment(["AVPLAYER_HEADLESS": "12"]) == .init(speed: 12))
        #expect(AVPlayer.HeadlessMode.fromEnvironment(["AVPLAYER_HEADLESS": "untimed"]) == .untimed)
        #expect(AVPlayer.HeadlessMode.fromEnvironment(["AVPLAYER_HEADLESS": "yes"]) == .init(speed: 1))
    }

    @Test("Playable media types are recognized with parameters and in any letter case")
    func mediaTypes() {
        #expect(AVURLAsset.isPlayableExtendedMIMEType("Audio/MPEG"))
        #expect(AVURLAsset.isPlayableExtendedMIMEType("video/mp4; codecs=\"avc1.42E01E\""))
        #expect(!AVURLAsset.isPlayableExtendedMIMEType("text/html"))
        #expect(AVURLAsset.audiovisualTypes().contains(.mp3))
    }
}

import CMPV
import Foundation
import Synchronization

extension ItemPlayback {
    /// Handles libmpv's events until the playback is shut down, and then destroys the handle. The method runs on a
    /// dedicated thread.
    func runEvents(of handle: MPVHandle) {
        while !state.withLock({ $0.isShutDown }) {
            let isSeeking = state.withLock { $0.seeks.pending != nil }
            let event = handle.nextEvent(timeout: isSeeking ? 0.1 : -1)
            if event == .none {
                nudgeSeek()
            } else {
                react(to: event, of: handle)
            }
        }
        state.withLock { $0.handle = nil }
        item.loadedUntil = nil
        if let id = state.withLock({ $0.seeks.cancel() }) { send.yield(.seekFinished(id: id, completed: false)) }
        handle.destroy()
        send.finish()
        item.playbacks.closed()
    }

    private func react(to event: MPVEvent, of handle: MPVHandle) {
        switch event {
        case .fileLoaded:
            state.withLock { $0.isLoaded = true }
            let isSeekable = handle.flag("seekable") ?? false
            state.withLock { $0.isSeekable = isSeekable }
            item.isSeekable = isSeekable
            if options.findsTracks { item.tracks = handle.tracks() }
            // Observed properties are reported after this event, but the duration must be known before the item is
            // ready. In a playlist without an end, seeking is possible only within libmpv's cache. libmpv soon reports
            // a duration even for such a playlist.
            let hasEnd = isSeekable && handle.flag("partially-seekable") != true
            if let seconds = handle.number("duration"), hasEnd || !isPlaylist(handle) {
                learned(duration: seconds)
            } else if isPlaylist(handle) {
                state.withLock { $0.isLive = true }
            }
            if item.becameReady() { send.yield(.ready) }
        case .fileEnded(let error, let message):
            guard error != 0 || state.withLock({ !$0.isLoaded }) else { return }
            fail(with: stream?.failure ?? reason(of: error, message: message))
        case .reply(let id, let error):
            replied(to: id, error: error)
        case .seek:
            loaded(until: nil)
            // The user may have used the window to seek away from the end.
            state.withLock { state in
                state.seeks.reachedDemuxer()
                state.isAtEnd = false
            }
        case .playbackRestart:
            restarted(handle)
        case .number("duration", let value?):
            // For a live stream, libmpv reports the end of its read-ahead as the duration.
            if !state.withLock({ $0.isLive }) { learned(duration: value) }
        case .number("time-pos", let value?):
            timeChanged(to: value, of: handle)
        case .number("demuxer-cache-time", let value):
            loaded(until: value)
        case .flag("core-idle", let isIdle):
            runs(!isIdle, handle)
        case .flag("eof-reached", true):
            // This event may be from before a seek that has since started, so the property is read again.
            if handle.flag("eof-reached") ?? true { reachedEnd(of: handle) }
        case .flag("pause", _):
            pauseChanged(handle)
        case .propertySet:
            state.withLock { $0.unansweredSets -= 1 }
            pauseChanged(handle)
            // libmpv does not report the end if playback starts there.
            if state.withLock({ $0.isPlaying && $0.isLoaded }), handle.flag("eof-reached") == true {
                reachedEnd(of: handle)
            }
        case .shutDown:
            fail(with: AVError(.mediaServicesWereReset))
            send.yield(.closed)
            shutDown()
        case .picture(let picture):
            send.yield(.picture(Snapshot(picture, of: handle)))
        case .none, .number, .flag, .other:
            break
        }
    }

    private func reason(of error: Int32, message: String?) -> AVError {
        // Without audio output, this error means that there is no video.
        if options.pictures != nil, error == MPV_ERROR_NOTHING_TO_PLAY.rawValue { return AVError(.noSourceTrack) }
        // libmpv's text for this code adds no information.
        return AVError(.fileFormatNotRecognized, detail: error == MPV_ERROR_UNKNOWN_FORMAT.rawValue ? nil : message)
    }

    private func loaded(until seconds: Double?) {
        item.loadedUntil = seconds
        send.yield(.loaded)
    }

    private func learned(duration: Double) {
        item.learned(duration: duration)
        let preferred = options.forwardBufferDuration
        stream?.learned(duration: duration, secondsAhead: preferred > 0 ? preferred : nil)
    }

    /// Handles a start or stop of playback, for example because of a seek, the end, or missing media.
    private func runs(_ isRunning: Bool, _ handle: MPVHandle) {
        let isHalted = state.withLock { $0.isAtEnd || $0.seeks.pending != nil || !$0.isLoaded }
        let isStarved =
            !isRunning && !isHalted && handle.flag("eof-reached") != true
            && (stream?.isReadWaiting ?? (handle.flag("paused-for-cache") == true))
        let isPlaying = state.withLock { state in
            // An item that has run out of media stays starved until it plays again, even if bytes are received in the
            // meantime.
            if state.isPlaying || isRunning { item.isStarved = isStarved }
            return state.isPlaying
        }
        send.yield(.running(isRunning))
        if isStarved, isPlaying { send.yield(.stalled) }
    }

    private func replied(to id: UInt64, error: Int32) {
        guard id != 0 else { return }
        if error < 0 {
            if state.withLock({ $0.seeks.refused(id) }) { send.yield(.seekFinished(id: id, completed: false)) }
        } else if state.withLock({ $0.seeks.noted(id) }) {
            interruptRead()
        }
    }

    /// Ends a blocked read for a seek.
    ///
    /// libmpv has queued the seek, but its demuxer may be blocked in a read of missing bytes. That read is not
    /// cancelled, and the demuxer does not seek until the read returns.
    private func interruptRead() {
        if stream?.interrupt() ?? false { state.withLock { $0.hasInterrupted = true } }
    }

    /// Handles the resumption of playback after a seek.
    private func restarted(_ handle: MPVHandle) {
        let isAtEnd = handle.flag("eof-reached") == true
        let id = state.withLock { state -> UInt64? in
            if isAtEnd, state.hasInterrupted, let id = state.seeks.pending, state.repeats < 10 {
                // The interrupted read was started by the seek itself, for a target within the demuxer's buffer. The
                // same seek succeeds now, because no read is blocked.
                state.repeats += 1
                state.hasInterrupted = false
                stream?.expectSeek()
                state.sendSeek(id, handle)
                return nil
            }
            return state.seeks.restarted()
        }
        guard let id else { return }
        if let seconds = position(of: handle) ?? state.withLock({ $0.seekTarget }) { timePassed(to: seconds) }
        loaded(until: handle.number("demuxer-cache-time"))
        send.yield(.seekFinished(id: id, completed: true))
        // This was a seek to the end or beyond. libmpv reported `eof-reached` during the seek.
        if isAtEnd { reachedEnd(of: handle) }
    }

    /// Handles the end of the demuxer's data. This is the end of the media, unless the stream has failed or a seek is
    /// in progress. While playback is paused, the end is not reported.
    private func reachedEnd(of handle: MPVHandle) {
        if let failure = stream?.failure { return fail(with: failure) }
        let isEnd = state.withLock { state in
            guard state.isPlaying, state.seeks.pending == nil, !state.isAtEnd else { return false }
            state.isAtEnd = true
            return true
        }
        guard isEnd else { return }
        if let seconds = position(of: handle) { timePassed(to: seconds) }
        if item.time < 0.1, item.duration ?? 0 > 1 {
            // No media was played, for example because the index of an MP4 file follows a part that cannot be skipped.
            return fail(with: AVError(.fileFailedToParse))
        }
        if isBeforeEnd(handle) {
            return fail(with: AVError(.contentIsUnavailable, detail: "the data ends before the stated duration"))
        }
        send.yield(.ended)
    }

    /// Handles a change to the pause property. A change that this player did not make was made by the user in the
    /// window.
    private func pauseChanged(_ handle: MPVHandle) {
        guard let isPaused = handle.flag("pause") else { return }
        let isByUser = state.withLock { state in
            guard state.isLoaded, state.unansweredSets == 0, state.isPlaying == isPaused else { return false }
            state.isPlaying = !isPaused
            return true
        }
        if isByUser { send.yield(.pausedInWindow(isPaused)) }
    }

    /// Returns whether the bytes end before the end of the media. This is the case if fewer bytes than the stated
    /// length were received, or if the file's index lists more media.
    ///
    /// The duration of a file without an index is only an estimate.
    private func isBeforeEnd(_ handle: MPVHandle) -> Bool {
        if stream?.endsEarly == true { return true }
        guard let duration = item.duration else { return false }
        guard let stream else {
            // libavformat skips rejected segments. The durations in a playlist may be wrong by a factor of two. After a
            // discontinuity that restarts the time, positions cannot be compared with the duration.
            return isPlaylist(handle) && !state.withLock { $0.hasRestartedTime } && item.time < duration / 2
        }
        let indexed = [AVFileType.mp4, .m4a, .m4v, .mov].map(\.rawValue)
        guard let type = stream.contentInformation?.contentType, indexed.contains(type) else { return false }
        return item.time < duration - max(2, duration / 10)
    }

    /// Returns whether the media is HLS.
    private func isPlaylist(_ handle: MPVHandle) -> Bool { handle.text("file-format")?.contains("hls") == true }

    /// Records a new position. libmpv reports changed properties after its other events, so this value may be from
    /// before a seek that has since finished. If the time seems to have changed by more than a second, the current
    /// position is used.
    private func timeChanged(to seconds: Double, of handle: MPVHandle) {
        guard abs(seconds - item.time) > 1, state.withLock({ $0.seeks.pending == nil }) else {
            return timePassed(to: seconds)
        }
        guard let current = position(of: handle) else { return }
        state.withLock { state in
            if state.seeks.pending == nil, current < item.time - 1 { state.hasRestartedTime = true }
        }
        timePassed(to: current)
    }

    /// Returns the current position, in seconds, or `nil` if libmpv has not found any media after a seek.
    ///
    /// In that case, libmpv moves to the end, and reports the duration as its position. For media with audio, this can
    /// be detected, because no audio has been played since the seek.
    private func position(of handle: MPVHandle) -> Double? {
        guard let seconds = handle.number("time-pos") else { return nil }
        let hasSound = handle.number("current-tracks/audio/id") != nil
        if hasSound, handle.number("audio-pts") == nil, seconds == handle.number("duration") { return nil }
        return seconds
    }

    /// Records a position. Negative positions are recorded as 0, because libmpv's clock starts below 0 by the latency
    /// of the audio device.
    private func timePassed(to seconds: Double) {
        item.time = max(0, seconds)
        send.yield(.time(max(0, seconds)))
    }

    /// Sends a seek again if the demuxer is stuck.
    ///
    /// After the interrupted read, the demuxer may be blocked in another read, which started just before the seek
    /// reached it.
    private func nudgeSeek() {
        guard let stream, stream.isReadStuck else { return }
        state.withLock { state in
            guard let id = state.seeks.pending, let handle = state.handle, state.repeats < 10 else { return }
            state.repeats += 1
            state.sendSeek(id, handle)
        }
    }

    private func fail(with error: any Error) {
        if item.failed(error) { send.yield(.failed) }
    }
}

extension ItemPlayback.State {
    func sendSeek(_ id: UInt64, _ handle: MPVHandle) {
        handle.command(lastSeek, id: id)
    }
}

/// An event that a playback reports to its player. Events are reported in order.
enum PlaybackEvent: Sendable, Equatable {
    case ready
    case time(Double)
    case ended
    case failed
    /// The loaded range has changed.
    case loaded
    /// Playback has started or stopped. It stops while it waits for media or a seek.
    case running(Bool)
    /// Playback stopped because media was not received in time.
    case stalled
    case seekFinished(id: UInt64, completed: Bool)
    /// The requested image.
    case picture(Snapshot)
    /// The user paused or resumed playback in the window.
    case pausedInWindow(Bool)
    /// The user closed the window.
    case closed
}

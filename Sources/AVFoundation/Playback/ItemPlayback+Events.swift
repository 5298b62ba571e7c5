import CMPV
import Foundation
import Synchronization

extension ItemPlayback {
    /// Reads libmpv's events until the playback is shut down, then destroys the handle. Runs on its own thread.
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
            // Observed properties are told only after this event, and a ready item knows its duration.
            if let seconds = handle.number("duration") {
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
            // It may be the person's at the window, back from the end.
            state.withLock { state in
                state.seeks.reachedDemuxer()
                state.isAtEnd = false
            }
        case .playbackRestart:
            restarted(handle)
        case .number("duration", let value?):
            // What libmpv tells of a stream without an end is how far it has read.
            if !state.withLock({ $0.isLive }) { learned(duration: value) }
        case .number("time-pos", let value?):
            timeChanged(to: value, of: handle)
        case .number("demuxer-cache-time", let value):
            loaded(until: value)
        case .flag("core-idle", let isIdle):
            runs(!isIdle, handle)
        case .flag("eof-reached", true):
            // What was told before a seek may be read after it.
            if handle.flag("eof-reached") ?? true { reachedEnd(of: handle) }
        case .flag("pause", _):
            pauseChanged(handle)
        case .propertySet:
            state.withLock { $0.unansweredSets -= 1 }
            pauseChanged(handle)
            // Begun to play where there is nothing more: libmpv does not tell of that.
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
        // Without sound, nothing to play is no picture.
        if options.pictures != nil, error == MPV_ERROR_NOTHING_TO_PLAY.rawValue { return AVError(.noSourceTrack) }
        // libmpv's own words for this code say no more than the code.
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

    /// Playback runs, or stands: for a seek, at the end, or because media has not come in time.
    private func runs(_ isRunning: Bool, _ handle: MPVHandle) {
        let isHalted = state.withLock { $0.isAtEnd || $0.seeks.pending != nil || !$0.isLoaded }
        let isStarved =
            !isRunning && !isHalted && handle.flag("eof-reached") != true
            && (stream?.isReadWaiting ?? (handle.flag("paused-for-cache") == true))
        let isPlaying = state.withLock { state in
            // What stopped for want of media lacks it until it plays on, though a piece may come in between.
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

    /// libmpv has queued the seek, but its demuxer may be blocked in a read of bytes that are not there yet and that
    /// nobody wants any more: libmpv neither cancels that read nor seeks until it returns.
    private func interruptRead() {
        if stream?.interrupt() ?? false { state.withLock { $0.hasInterrupted = true } }
    }

    /// Playback goes on from where a seek went.
    private func restarted(_ handle: MPVHandle) {
        let isAtEnd = handle.flag("eof-reached") == true
        let id = state.withLock { state -> UInt64? in
            if isAtEnd, state.hasInterrupted, let id = state.seeks.pending, state.repeats < 10 {
                // The read that was made to return was the seek's own, within what the demuxer had buffered; now
                // that nothing is blocked, the same seek comes through.
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
        // A seek to the end, or beyond: its `eof-reached` came while the seek was under way.
        if isAtEnd { reachedEnd(of: handle) }
    }

    /// The demuxer has nothing more: the end of the media, unless the stream broke off or a seek is under way. While
    /// paused, that is no end yet.
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
            // Nothing was played, as with an mp4 whose index lies beyond a stretch that can't be skipped.
            return fail(with: AVError(.fileFailedToParse))
        }
        if isBeforeEnd(handle) {
            return fail(with: AVError(.contentIsUnavailable, detail: "it ends before its duration"))
        }
        send.yield(.ended)
    }

    /// What this player has set is answered for before the change is told; what else changes is the person's, who
    /// pressed a key or the controller of the window.
    private func pauseChanged(_ handle: MPVHandle) {
        guard let isPaused = handle.flag("pause") else { return }
        let isTheirs = state.withLock { state in
            guard state.isLoaded, state.unansweredSets == 0, state.isPlaying == isPaused else { return false }
            state.isPlaying = !isPaused
            return true
        }
        if isTheirs { send.yield(.pausedInWindow(isPaused)) }
    }

    /// Whether what has ended are the bytes and not the media: fewer came than were told of, or the index of the file
    /// promises more. The duration of a file without an index is an estimate and proves nothing.
    private func isBeforeEnd(_ handle: MPVHandle) -> Bool {
        if stream?.endsEarly == true { return true }
        guard let duration = item.duration else { return false }
        guard let stream else {
            // libavformat passes over the segments that it is refused. What a playlist says of their durations may be off
            // by half; where a discontinuity has begun the time anew, it proves nothing.
            return isPlaylist(handle) && !state.withLock { $0.hasRestartedTime } && item.time < duration / 2
        }
        let indexed = [AVFileType.mp4, .m4a, .m4v, .mov].map(\.rawValue)
        guard let type = stream.contentInformation?.contentType, indexed.contains(type) else { return false }
        return item.time < duration - max(2, duration / 10)
    }

    /// Whether it plays HLS.
    private func isPlaylist(_ handle: MPVHandle) -> Bool { handle.text("file-format")?.contains("hls") == true }

    /// Records a new position. libmpv reports changed properties after its other events, so this value can be from before
    /// a seek that has ended. If the time seems to have moved by more than a second, the current position decides.
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

    /// The current position. `nil` if libmpv found no media after a seek: it then moves to the duration and reports that as
    /// the position, though it has played no sound since the seek.
    private func position(of handle: MPVHandle) -> Double? {
        guard let seconds = handle.number("time-pos") else { return nil }
        let hasSound = handle.number("current-tracks/audio/id") != nil
        if hasSound, handle.number("audio-pts") == nil, seconds == handle.number("duration") { return nil }
        return seconds
    }

    /// libmpv's clock begins a little below 0, by what the sound device has yet to play.
    private func timePassed(to seconds: Double) {
        item.time = max(0, seconds)
        send.yield(.time(max(0, seconds)))
    }

    /// Sends a seek again if its demuxer is stuck: a read that began just before the seek got to the demuxer may
    /// have blocked anew, after the one that was made to return.
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

import Foundation
import Synchronization

extension ItemPlayback {
    /// Reads libmpv's events until the playback is shut down, then destroys the handle. Runs on its own thread.
    func runEvents(of handle: MPVHandle) {
        while !state.withLock({ $0.isShutDown }) {
            let isSeeking = state.withLock { $0.seeks.pending != nil }
            let event = handle.nextEvent(timeout: isSeeking ? 0.25 : -1)
            if event == .none {
                nudgeSeek()
            } else {
                react(to: event)
            }
        }
        state.withLock { $0.handle = nil }
        if let id = state.withLock({ $0.seeks.cancel() }) { send.yield(.seekFinished(id: id, completed: false)) }
        handle.destroy()
        send.finish()
        item.playbacks.closed()
    }

    private func react(to event: MPVEvent) {
        switch event {
        case .fileLoaded:
            state.withLock { $0.isLoaded = true }
            if item.becameReady() { send.yield(.ready) }
        case .fileEnded(let error, let message):
            guard error != 0 || state.withLock({ !$0.isLoaded }) else { return }
            fail(with: stream?.failure ?? AVError(.fileFormatNotRecognized, detail: message))
        case .reply(let id, let error):
            replied(to: id, error: error)
        case .seek:
            state.withLock { $0.seeks.reachedDemuxer() }
            stream?.endInterrupt()
        case .playbackRestart:
            if let id = state.withLock({ $0.seeks.restarted() }) {
                send.yield(.seekFinished(id: id, completed: true))
                // A seek to the end, or beyond: its `eof-reached` came while the seek was under way.
                if state.withLock({ $0.handle })?.flag("eof-reached") == true { reachedEnd() }
            }
        case .number("duration", let value?):
            item.learned(duration: value)
        case .number("time-pos", let value?):
            item.time = value
            send.yield(.time(value))
        case .flag("core-idle", let isIdle):
            item.isStarved = isIdle
            send.yield(.running(!isIdle))
        case .flag("eof-reached", true):
            reachedEnd()
        case .shutDown:
            fail(with: AVError(.mediaServicesWereReset))
            send.yield(.closed)
            shutDown()
        case .none, .number, .flag, .other:
            break
        }
    }

    private func replied(to id: UInt64, error: Int32) {
        guard id != 0 else { return }
        if error < 0 {
            if state.withLock({ $0.seeks.refused(id) }) { send.yield(.seekFinished(id: id, completed: false)) }
        } else if state.withLock({ $0.seeks.noted(id) }) {
            // libmpv has queued the seek, but its demuxer may be blocked in a read of bytes that are not there yet
            // and that nobody wants any more: libmpv neither cancels that read nor seeks until it returns.
            stream?.interrupt()
        }
    }

    /// The demuxer has nothing more: the end of the media, unless the stream broke off or a seek is under way.
    private func reachedEnd() {
        if let failure = stream?.failure { return fail(with: failure) }
        let isEnd = state.withLock { state in
            guard state.seeks.pending == nil, !state.isAtEnd else { return false }
            state.isAtEnd = true
            return true
        }
        if isEnd { send.yield(.ended) }
    }

    /// Sends a seek again if its demuxer is stuck: a read that began just before the seek got to the demuxer may
    /// have blocked anew, after the one that was made to return.
    private func nudgeSeek() {
        guard let stream, stream.isReadStuckSinceInterrupt else { return }
        state.withLock { state in
            guard let id = state.seeks.pending, let handle = state.handle, state.nudges < 3 else { return }
            state.nudges += 1
            handle.command(["seek", String(state.lastSeekTarget), "absolute+exact"], id: id)
        }
    }

    private func fail(with error: any Error) {
        if item.failed(error) { send.yield(.failed) }
    }
}

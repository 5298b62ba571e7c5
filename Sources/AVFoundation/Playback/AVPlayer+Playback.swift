import Foundation

extension AVPlayer {
    /// Releases the previous item and starts loading the new one.
    func setCurrent(_ item: AVPlayerItem?) {
        let previous = currentItem
        playback?.shutDown()
        playback = nil
        isRunning = false
        seekWhenReady = nil
        hasEndedBeforeSeek = false
        previous?.player = nil
        finishSeeks(completed: false)
        currentItem = item
        defer { post(Self.currentItemDidChangeNotification) }
        guard let item else { return }
        item.player = self
        start(item)
    }

    private func start(_ item: AVPlayerItem) {
        guard item.status != .failed else { return }
        guard let source = item.source else {
            _ = item.state.failed(AVError(.unknown, detail: "the asset has no URL"))
            return itemFailed(item)
        }
        if case .stream(let stream, _) = source, let failure = stream.failure {
            _ = item.state.failed(failure)
            return itemFailed(item)
        }
        let options = PlaybackOptions(
            headless: headless, outputs: .ofThisMachine, isCustomStream: source.isStream,
            isFile: item.urlAsset?.url.isFileURL ?? false,
            userAgent: item.urlAsset?.userAgent,
            isPrecise: item.urlAsset?.prefersPreciseTiming ?? false,
            forwardBufferDuration: item.preferredForwardBufferDuration)
        guard let playback = ItemPlayback(source: source, item: item.state, options: options) else {
            return itemFailed(item)
        }
        self.playback = playback
        playback.setVolume(volume, isMuted: isMuted)
        playback.setRate(wantedRate)
        // This task retains neither the player nor the item. The events end when the playback ends.
        Task { @MainActor [weak self, weak item, events = playback.events] in
            for await event in events {
                guard let self, let item, self.playback === playback else { continue }
                self.react(to: event, of: item)
            }
        }
    }

    private func react(to event: PlaybackEvent, of item: AVPlayerItem) {
        switch event {
        case .ready:
            item.post(.AVPlayerItemStatusDidChange)
            if let seek = seekWhenReady {
                seekWhenReady = nil
                playback?.seek(to: seek.seconds, id: seek.id)
            }
            itemBecameReady()
        case .time(let seconds):
            timePassed(to: seconds)
        case .loaded:
            if item.status == .readyToPlay { item.post(.AVPlayerItemLoadedTimeRangesDidChange) }
        case .running(let isRunning):
            let previous = timeControlStatus
            self.isRunning = isRunning
            reportTimeControl(since: previous)
        case .stalled:
            guard wantedRate != 0 else { return }
            if !automaticallyWaitsToMinimizeStalling {
                // The item is marked as starved even if bytes were received in the meantime, so that observers of the
                // rate see why it is 0.
                changeRate(to: 0, reason: nil, isStarved: true)
            }
            guard item.urlAsset?.resourceLoader.core.policy.postsStalls ?? true else { return }
            item.post(.AVPlayerItemPlaybackStalled)
        case .seekFinished(let id, let completed):
            if completed { item.post(.AVPlayerItemTimeJumped) }
            seeks.removeValue(forKey: id)?(completed)
            guard hasEndedBeforeSeek, seeks.isEmpty else { return }
            hasEndedBeforeSeek = false
            if !completed { itemEnded(item) }
        case .ended:
            // During a seek, the end is only recorded, because the seek may move away from the end.
            if seeks.isEmpty { itemEnded(item) } else { hasEndedBeforeSeek = true }
        case .pausedInWindow(let isPaused):
            wantedInWindow(isPaused ? 0 : defaultRate)
        case .failed, .closed:
            itemFailed(item)
        case .picture:
            break  // A player does not request images.
        }
    }

    private func itemFailed(_ item: AVPlayerItem) {
        playback?.shutDown()
        playback = nil
        isRunning = false
        finishSeeks(completed: false)
        item.post(.AVPlayerItemStatusDidChange)
        item.post(.AVPlayerItemFailedToPlayToEndTime, error: item.error)
    }

    private func itemEnded(_ item: AVPlayerItem) {
        // The player's state changes before the notification is posted.
        switch actionAtItemEnd {
        case .advance: advanceAfterEnd()
        case .pause: changeRate(to: 0, reason: nil)
        case .none: break
        }
        item.post(.AVPlayerItemDidPlayToEndTime)
    }

    private func finishSeeks(completed: Bool) {
        let handlers = seeks
        seeks = [:]
        for handler in handlers.sorted(by: { $0.key < $1.key }) { handler.value(completed) }
    }

    // MARK: Seeking

    /// Seeks to a time. The seek is exact regardless of the requested tolerance.
    public func seek(to time: CMTime) {
        seek(to: time) { _ in }
    }

    /// Seeks to a time; see ``seek(to:completionHandler:)``.
    public func seek(to time: CMTime, toleranceBefore: CMTime, toleranceAfter: CMTime) {
        seek(to: time) { _ in }
    }

    /// Seeks to a time; see ``seek(to:completionHandler:)``.
    public func seek(
        to time: CMTime, toleranceBefore: CMTime, toleranceAfter: CMTime,
        completionHandler: @escaping @Sendable (Bool) -> Void
    ) {
        seek(to: time, completionHandler: completionHandler)
    }

    /// Seeks to a time.
    ///
    /// If the item is not ready yet, the seek is delayed until it is. A new seek replaces a previous seek that has not
    /// finished.
    ///
    /// - Parameter completionHandler: A function that is called once, on the main actor. Its argument is `true` when
    ///   playback continues at the requested time. It is `false` if another seek replaced this one, the item changed or
    ///   failed, or the time is not numeric.
    public func seek(to time: CMTime, completionHandler: @escaping @Sendable (Bool) -> Void) {
        guard let item = currentItem, item.status != .failed, time.isNumeric else { return completionHandler(false) }
        lastSeek += 1
        let id = lastSeek
        seeks[id] = completionHandler
        if item.status == .readyToPlay {
            playback?.seek(to: time.seconds, id: id)
        } else {
            if let previous = seekWhenReady { seeks.removeValue(forKey: previous.id)?(false) }
            seekWhenReady = (time.seconds, id)
        }
    }

    /// Seeks to a time. Returns `true` when playback continues there. See ``seek(to:completionHandler:)``.
    @discardableResult
    public func seek(to time: CMTime) async -> Bool {
        await withCheckedContinuation { continuation in
            seek(to: time) { continuation.resume(returning: $0) }
        }
    }

    /// Seeks to a time. Returns `true` when playback continues there. See ``seek(to:completionHandler:)``.
    @discardableResult
    public func seek(to time: CMTime, toleranceBefore: CMTime, toleranceAfter: CMTime) async -> Bool {
        await seek(to: time)
    }
}

extension ItemPlayback.Source {
    var isStream: Bool {
        if case .stream = self { true } else { false }
    }
}

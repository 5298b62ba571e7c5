extension AVPlayerItem {
    /// Waits until no libmpv handle plays the item any more. Linux only, for tests: returns at once if none ever did.
    nonisolated package func waitUntilReleased() async {
        await state.playbacks.waitUntilNone()
    }

    /// How many libmpv handles play the item: 0 or 1. Linux only, for tests.
    nonisolated package var openPlaybacks: Int { state.playbacks.count }
}

extension AVAssetResourceLoader {
    /// Whether a player's new request after a seek is sent before the cancel of the former: both orders happen with
    /// Apple's. Heeded by items made from now on. Linux only, for tests.
    package var requestsBeforeCancelling: Bool {
        get { core.policy.requestsBeforeCancelling }
        set { core.policy.requestsBeforeCancelling = newValue }
    }

    /// How many bytes a player's stream holds ahead before it calls its request off, and below how many it asks
    /// again. Heeded by items made from now on. Linux only, for tests.
    package func setReadAhead(cancelAbove: Int64, requestBelow: Int64) {
        core.policy.cancelAbove = cancelAbove
        core.policy.requestBelow = requestBelow
        core.policy.secondsAhead = nil
    }

    /// How a player asks for the asset's bytes. Heeded by items made from now on. Linux only, for tests.
    package enum PlayerPattern: String, Sendable, CaseIterable {
        /// One request at a time, called off in time: AVPlayer's with a song.
        case friendly
        /// Several at once, called off late, time-outs, no word of a stall: whatever the documentation leaves open.
        case hostile
    }

    /// How a player asks. Sets everything else that is set here back to what belongs to the pattern.
    package var playerPattern: PlayerPattern {
        get { core.policy.isConcurrent ? .hostile : .friendly }
        set { core.policy = newValue == .hostile ? .hostile : LoadingPolicy() }
    }

    /// After how many seconds without a byte a request fails its item; nil: never.
    package var requestTimeout: Double? {
        get { core.policy.requestTimeout }
        set { core.policy.requestTimeout = newValue }
    }

    /// Whether the rest is asked for again after a request that ended short of the length, instead of taking the resource
    /// to end there, as is documented.
    package var asksAgainAfterShortFinish: Bool {
        get { core.policy.shortFinish == .asksAgain }
        set { core.policy.shortFinish = newValue ? .asksAgain : .endsResource }
    }

    /// Whether the probe's two bytes, handed over, make the player wait for ever.
    package var chokesOnProbe: Bool {
        get { core.policy.chokesOnProbe }
        set { core.policy.chokesOnProbe = newValue }
    }
}

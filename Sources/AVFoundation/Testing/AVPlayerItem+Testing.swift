extension AVPlayerItem {
    /// Waits until no libmpv handle plays the item any more. Linux only, for tests: returns at once if none ever did.
    @_spi(Testing) nonisolated public func waitUntilReleased() async {
        await state.playbacks.waitUntilNone()
    }

    /// How many libmpv handles play the item: 0 or 1. Linux only, for tests.
    @_spi(Testing) nonisolated public var openPlaybacks: Int { state.playbacks.count }
}

extension AVAssetResourceLoader {
    /// Whether a player's new request after a seek is sent before the cancel of the former: both orders happen with
    /// Apple's. Heeded by items made from now on. Linux only, for tests.
    @_spi(Testing) public var requestsBeforeCancelling: Bool {
        get { core.policy.requestsBeforeCancelling }
        set { core.policy.requestsBeforeCancelling = newValue }
    }

    /// How many bytes a player's stream holds ahead before it calls its request off, and below how many it asks
    /// again. Heeded by items made from now on. Linux only, for tests.
    @_spi(Testing) public func setReadAhead(cancelAbove: Int64, requestBelow: Int64) {
        core.policy.cancelAbove = cancelAbove
        core.policy.requestBelow = requestBelow
        core.policy.secondsAhead = nil
    }
}

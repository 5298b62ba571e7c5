extension AVPlayerItem {
    /// Waits until no libmpv handle is open for the item. Linux only, for tests.
    nonisolated package func waitUntilReleased() async {
        await state.playbacks.waitUntilNone()
    }

    /// The number of open libmpv handles for the item, usually 0 or 1. Linux only, for tests.
    nonisolated package var openPlaybacks: Int { state.playbacks.count }
}

extension AVAssetResourceLoader {
    /// Whether the player sends the request for a seek before it cancels the previous request. Both orders occur with
    /// Apple's player. The setting applies to later items. Linux only, for tests.
    package var requestsBeforeCancelling: Bool {
        get { core.policy.requestsBeforeCancelling }
        set { core.policy.requestsBeforeCancelling = newValue }
    }

    /// Sets the limits of the read-ahead, in bytes. A player cancels its request when `cancelAbove` bytes are buffered
    /// ahead of the position, and sends another one below `requestBelow`. The settings apply to later items. Linux
    /// only, for tests.
    package func setReadAhead(cancelAbove: Int64, requestBelow: Int64) {
        core.policy.cancelAbove = cancelAbove
        core.policy.requestBelow = requestBelow
        core.policy.secondsAhead = nil
    }

    /// The pattern in which a player requests the asset's bytes. The setting applies to later items. Linux only, for
    /// tests.
    package enum PlayerPattern: String, Sendable, CaseIterable {
        /// Sends one request at a time and cancels it without delay, as AVPlayer does for audio.
        case friendly
        /// Sends concurrent requests, cancels them late, times out, and does not post stall notifications. This is the
        /// least convenient behavior that the documentation allows.
        case hostile
    }

    /// The request pattern. Setting it resets the settings below to the pattern's values.
    package var playerPattern: PlayerPattern {
        get { core.policy.isConcurrent ? .hostile : .friendly }
        set { core.policy = newValue == .hostile ? .hostile : LoadingPolicy() }
    }

    /// The number of seconds without a byte after which a request fails its item, or `nil` for no limit.
    package var requestTimeout: Double? {
        get { core.policy.requestTimeout }
        set { core.policy.requestTimeout = newValue }
    }

    /// Whether the player requests missing bytes again after a request that ended early. According to the
    /// documentation, the resource would end where the request ended.
    package var asksAgainAfterShortFinish: Bool {
        get { core.policy.shortFinish == .asksAgain }
        set { core.policy.shortFinish = newValue ? .asksAgain : .endsResource }
    }

    /// Whether the player waits forever after it has received the two bytes of the probe.
    package var hangsAfterProbe: Bool {
        get { core.policy.hangsAfterProbe }
        set { core.policy.hangsAfterProbe = newValue }
    }
}

extension AVAssetImageGenerator {
    /// Waits until no image is being generated and no libmpv handle is open. Linux only, for tests.
    package func waitUntilIdle() async { await requests.waitUntilIdle() }

    /// The time limit for an image, in seconds. Linux only, for tests.
    package var secondsForAnImage: Double {
        get { timeLimit }
        set { timeLimit = newValue }
    }

    /// Generates an image like `copyCGImage(at:actualTime:)`, but without the deprecation warning. Linux only, for
    /// tests.
    package func blockingImage(
        at requestedTime: CMTime, actualTime: UnsafeMutablePointer<CMTime>?
    ) throws -> CGImage {
        try waitForImage(at: requestedTime, actualTime: actualTime)
    }
}

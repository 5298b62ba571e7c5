extension AVAssetImageGenerator {
    /// Waits until no image is being made and no libmpv handle is open. Linux only, for tests.
    package func waitUntilIdle() async { await requests.waitUntilIdle() }

    /// After how many seconds an image is given up. Linux only, for tests.
    package var secondsForAnImage: Double {
        get { timeLimit }
        set { timeLimit = newValue }
    }

    /// What `copyCGImage(at:actualTime:)` does, which can't be called without a warning. Linux only, for tests.
    package func blockingImage(
        at requestedTime: CMTime, actualTime: UnsafeMutablePointer<CMTime>?
    ) throws -> CGImage {
        try waitForImage(at: requestedTime, actualTime: actualTime)
    }
}

public import Dispatch

extension AVPlayer {
    /// Calls the block whenever playback passes a multiple of the interval, and after jumps.
    ///
    /// - Parameter interval: should be above 0; else every change of time is told.
    /// - Parameter queue: where the block is called; nil for the main queue.
    /// - Returns: an object for ``removeTimeObserver(_:)``; keep it.
    public func addPeriodicTimeObserver(
        forInterval interval: CMTime, queue: DispatchQueue?, using block: @escaping @Sendable (CMTime) -> Void
    ) -> Any {
        let token = TimeObserverToken()
        let seconds = interval.isNumeric && interval.seconds > 0 ? interval.seconds : 1e-6
        timeObservers.append(
            TimeObserver(token: token, interval: seconds, queue: queue ?? .main, block: block))
        return token
    }

    /// Ends what ``addPeriodicTimeObserver(forInterval:queue:using:)`` began.
    public func removeTimeObserver(_ observer: Any) {
        guard let token = observer as? TimeObserverToken else { return }
        timeObservers.removeAll { $0.token === token }
    }

    func timePassed(to seconds: Double) {
        let time = CMTime(seconds: seconds, preferredTimescale: 1_000_000)
        for index in timeObservers.indices where timeObservers[index].isDue(at: seconds) {
            let block = timeObservers[index].block
            timeObservers[index].queue.async { block(time) }
        }
    }
}

/// How far a preload has come.
public struct PreloadState: Sendable {
    /// What it does; further phases may be added, so switch with a default.
    public struct Phase: Sendable, Hashable {
        private enum Name { case waiting, running, finished, failed, cancelled }

        private let name: Name

        /// Its turn has not come, or it is put off: see ``Preloader/isPaused``.
        public static let waiting = Phase(name: .waiting)
        /// Bytes are being brought.
        public static let running = Phase(name: .running)
        /// All that was wanted has landed.
        public static let finished = Phase(name: .finished)
        /// It could not be done; ``PreloadState/error`` says why.
        public static let failed = Phase(name: .failed)
        /// It was given up; what had landed stays.
        public static let cancelled = Phase(name: .cancelled)

        /// Whether nothing happens any more.
        public var isEnd: Bool { name != .waiting && name != .running }
    }

    /// What it does.
    public internal(set) var phase = Phase.waiting
    /// Bytes of what is wanted that are there.
    public internal(set) var landedByteCount: Int64 = 0
    /// Bytes that are wanted; nil as long as nobody knows: the container has to be looked at first.
    public internal(set) var wantedByteCount: Int64?
    /// Why it failed.
    public internal(set) var error: (any Error)?

    /// The part that is there, from 0 to 1; nil as long as nobody knows what is wanted.
    public var fractionCompleted: Double? {
        wantedByteCount.map { $0 > 0 ? min(Double(landedByteCount) / Double($0), 1) : 1 }
    }

    /// Whether all that was wanted has landed.
    public var isComplete: Bool { phase == .finished }
}

import Observation

/// Waits until something that can be observed has held, be it for a moment, or the task is cancelled.
///
/// A state that is over before this task gets its turn counts, too: on a busy machine that may take long.
@MainActor package func observed(_ condition: @escaping @MainActor () -> Bool) async {
    let (stream, continuation) = AsyncStream<Void>.makeStream()
    let observation = ObservedCondition(of: condition) { continuation.finish() }
    observation.look()
    for await _ in stream {}
    observation.end()
}

@MainActor private final class ObservedCondition {
    private let condition: @MainActor () -> Bool
    private var whenMet: (() -> Void)?
    private var looks = 0

    init(of condition: @escaping @MainActor () -> Bool, whenMet: @escaping () -> Void) {
        (self.condition, self.whenMet) = (condition, whenMet)
    }

    func look() {
        guard let whenMet else { return }
        looks += 1
        let number = looks
        let holds = withObservationTracking(condition) { [weak self] in
            MainActor.assumeIsolated { self?.willChange(after: number) }
        }
        if holds { whenMet() }
    }

    /// Something will have changed once the caller has returned. What is now may have been set since the last look.
    private func willChange(after number: Int) {
        guard number == looks else { return }
        look()
        Task { look() }
    }

    func end() { whenMet = nil }
}

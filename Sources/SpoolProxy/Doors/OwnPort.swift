#if Proxy
import Synchronization

/// The port that the server listens on: known once it does.
final class OwnPort: Sendable {
    private let port = Atomic<Int>(0)

    /// The port; 0 before the server listens.
    var value: Int { port.load(ordering: .relaxed) }

    func set(_ value: Int) { port.store(value, ordering: .relaxed) }
}
#endif

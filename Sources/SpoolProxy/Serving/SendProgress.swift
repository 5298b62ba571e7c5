#if Proxy
import Synchronization

/// How much of a response the client's socket has taken.
final class SendProgress: Sendable {
    private let bytes = Atomic<Int>(0)

    /// Body bytes that have gone out.
    var count: Int { bytes.load(ordering: .relaxed) }

    func sent(_ count: Int) { bytes.add(count, ordering: .relaxed) }
}
#endif

#if Proxy
import Synchronization

/// Which of the resources that were asked for lately are manifests, so that their first bytes are looked at once.
final class ManifestKinds: Sendable {
    private let known = Mutex(Remembered<String, ManifestKind?>(count: limit))
    private static let limit = 4096

    /// What was found; nil if nobody has looked.
    subscript(name: String) -> ManifestKind?? { known.withLock { $0[name] } }

    /// Notes what was found; nil: it is not a manifest.
    func note(_ kind: ManifestKind?, of name: String) {
        known.withLock { $0.note(kind, for: name, bytes: name.utf8.count) }
    }
}
#endif

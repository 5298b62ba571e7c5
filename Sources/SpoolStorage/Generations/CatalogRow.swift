import Synchronization

/// The catalog's number for a generation, once it has one.
final class CatalogRow: Sendable {
    private let id: Mutex<Int64?>

    init(_ id: Int64? = nil) { self.id = Mutex(id) }

    var value: Int64? {
        get { id.withLock { $0 } }
        set { id.withLock { $0 = newValue } }
    }
}

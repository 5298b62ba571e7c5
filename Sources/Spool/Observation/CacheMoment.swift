/// What a cache's instruments are told, when it happens.
enum CacheMoment: Sendable {
    /// A request to an origin, by the resource's number among those of its cache and its own number there.
    struct TransferName: Hashable, Sendable {
        var resource: UInt32
        var id: TransferID
    }

    /// A reader has taken its place in a resource, or left it.
    case readerOpened
    case readerClosed
    /// A player has got the first bytes that a reader of its asked for.
    ///
    /// - `isStored`: Whether they had been handed out before, or had landed before the resource was opened: no origin was
    ///   asked for them.
    case firstBytes(after: Duration, isStored: Bool, address: String)
    /// So many bytes were handed to a reader; of these, so many had not landed freshly for it.
    case served(bytes: Int64, stored: Int64)
    /// An origin is sent a request.
    case asked
    /// Body bytes have come from an origin.
    case received(bytes: Int64)
    /// A transfer has begun, and waits for its line to the origin; or is over.
    case transferBegan(TransferName, address: String)
    case transferEnded(TransferName)
    /// What everybody is told.
    case event(CacheEvent)
}

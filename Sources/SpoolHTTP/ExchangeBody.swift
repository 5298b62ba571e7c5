import Foundation
import Spool
import Synchronization

/// The body of an ``Exchange``, for ``UpstreamBody``: closes it when it is dropped, before or during iteration.
struct ExchangeBody<Chunk: GatheredBytes>: AsyncSequence, Sendable {
    typealias Element = Chunk

    /// Closes the exchange when the last reference goes, unless an iterator has taken over.
    private final class Owner: Sendable {
        let exchange: Exchange<Chunk>
        let isTakenOver = Mutex(false)
        init(_ exchange: Exchange<Chunk>) { self.exchange = exchange }
        deinit { if !isTakenOver.withLock({ $0 }) { exchange.close() } }
    }

    private let owner: Owner

    init(_ exchange: Exchange<Chunk>) { owner = Owner(exchange) }

    func makeAsyncIterator() -> Iterator {
        owner.isTakenOver.withLock { $0 = true }
        return Iterator(owner.exchange)
    }

    final class Iterator: AsyncIteratorProtocol {
        private let exchange: Exchange<Chunk>
        init(_ exchange: Exchange<Chunk>) { self.exchange = exchange }
        deinit { exchange.close() }

        func next() async throws -> Chunk? { try await exchange.next() }
    }
}

#if canImport(AVFoundation) && !os(watchOS)
public import Spool

extension CachingQueue {
    /// One place of a list. The same media may be listed more than once, as entries of their own.
    public struct Entry: Identifiable, Sendable {
        /// Tells an entry from all others of its queue, for good.
        public struct ID: Hashable, Sendable {
            let number: Int
        }

        let number: Int
        /// What is played.
        public let source: MediaSource

        /// Its name in the queue.
        public var id: ID { ID(number: number) }
    }
}
#endif

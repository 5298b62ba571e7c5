import SpoolStorage
import Synchronization

/// The properties that sources assign to a resource, and the record of its uses in the store.
final class ResourceUse: Sendable {
    private struct State {
        /// The key of the stored variant, or `nil` before it is known.
        var storageKey: CacheKey?
        /// The presentation that the resource is a part of.
        var presentation: CacheKey?
        var evictsAfterPlayback = false
        var tag: String?
    }

    /// The number that identifies the resource in its cache.
    let number: UInt32
    private let key: CacheKey
    private let context: CacheContext
    private let state = Mutex(State())

    init(_ key: CacheKey, _ context: CacheContext) {
        self.key = key
        self.context = context
        number = context.recentUse.newNumber()
    }

    /// The key under which the bytes are stored.
    var storageKey: CacheKey { state.withLock { $0.storageKey } ?? key }

    func setStorageKey(_ key: CacheKey) { state.withLock { $0.storageKey = key } }

    /// The presentation that the resource is a part of, according to the last source that has one.
    var presentation: CacheKey? { state.withLock { $0.presentation } }

    /// Records the properties that the source of a player assigns to the resource.
    func note(_ source: MediaSource) {
        guard source.presentation != nil || source.evictsAfterPlayback || source.tag != nil else { return }
        state.withLock { state in
            if let presentation = source.presentation { state.presentation = presentation }
            if source.evictsAfterPlayback { state.evictsAfterPlayback = true }
            if let tag = source.tag { state.tag = tag }
        }
    }

    /// Records a use of the resource, unless it repeats the last recorded use within the same second.
    func recordUse() {
        guard context.recentUse.note(number, at: context.clock.elapsed()) else { return }
        let (presentation, tag) = state.withLock { ($0.presentation, $0.tag) }
        context.opening.openedStore?.recordUse(of: storageKey, in: presentation, tag: tag)
    }

    /// Records the offset at which a player has stopped, because the next playback may continue there.
    func recordStop(at offset: Int64, length: Int64?) {
        guard offset > 0, let store = context.opening.openedStore else { return }
        let isEnd = length.map { offset >= $0 } ?? false
        let isConsumed = isEnd && state.withLock { $0.evictsAfterPlayback }
        store.recordStop(isEnd ? nil : offset, isConsumed: isConsumed, of: storageKey)
    }
}

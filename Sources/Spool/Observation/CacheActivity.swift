package import SpoolStorage

/// What a cache does at a moment, and what befell it since it was made: for figures and pages that show it.
package struct CacheActivity: Sendable {
    /// A request to an origin that is under way.
    package struct RunningTransfer: Sendable, Hashable {
        /// Scheme, host and path.
        package var address: String
        /// Where it began, and the next byte that it brings.
        package var start: Int64
        package var position: Int64
        /// Where it ends; nil: at the end of what its origin sends.
        package var end: Int64?
    }

    /// How often things happened that are not for every chunk.
    package struct Counts: Sendable, Hashable {
        /// Evictions of all or a part of a resource, and the bytes that went.
        package var evictions = 0
        package var evictedBytes: Int64 = 0
        /// Tries that failed and were repeated.
        package var retries = 0
        /// Errors that readers were given, by ``SpoolStorage/CacheError/Code-swift.struct``.
        package var errors: [CacheError.Code: Int] = [:]
    }

    /// Readers that are open.
    package var readers = 0
    /// Requests under way, by address and place.
    package var transfers: [RunningTransfer] = []
    /// What has been counted.
    package var counts = Counts()
}

extension CacheActivity.Counts {
    /// Counts an event, if it is one of those that ``CacheEvent/Kind-swift.enum/counts`` names.
    mutating func note(_ kind: CacheEvent.Kind) {
        switch kind {
        case .evicted(let bytes):
            evictions += 1
            evictedBytes += bytes
        case .retrying: retries += 1
        case .failed(let error): errors[error.code, default: 0] += 1
        default: break
        }
    }
}

extension CacheEvent.Kind {
    /// Whether ``CacheActivity/Counts`` counts it.
    var counts: Bool {
        switch self {
        case .evicted, .retrying, .failed: true
        default: false
        }
    }
}

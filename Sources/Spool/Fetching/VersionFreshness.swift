import Foundation
import HTTPRanges
import HTTPTypes
import SpoolStorage
import Synchronization

/// The freshness of the current version of a resource, and the time at which the origin last confirmed it.
///
/// This type does not depend on the version's bytes.
final class VersionFreshness: Sendable {
    private struct State {
        /// The freshness of the stored response, or `nil` if it is not known.
        var stored: StoredFreshness?
        /// The elapsed time at which the origin last confirmed or sent the version, and the last opening to which this
        /// applies.
        var validated: (at: Duration, opening: Int)?
        /// The number of times that the resource has been opened.
        var openings = 0
        /// Whether a revalidation is in progress while a stale version is used.
        var isRevalidating = false
    }

    /// The time, under ``FreshnessPolicy/http``, for which readers do not request a response again after it was
    /// received or confirmed. Readers that start within this time count as one use.
    private static let useTime = Duration.seconds(10)

    private let policy: FreshnessPolicy
    private let clock: CacheClock
    /// The value of ``StoredFreshness/requesterHash`` for the requests of this resource.
    let requesterHash: String?
    /// A function that returns whether the current version may be live.
    private let mayBeLive: @Sendable () -> Bool
    private let state = Mutex(State())

    /// Creates an object for a resource that has not been opened yet.
    ///
    /// - Parameters:
    ///   - request: The header fields of the requests, or `nil` if their responses are never sent to other users.
    ///   - mayBeLive: A function that returns whether the current version may be live, so that its bytes must not be
    ///     used when the resource is opened later. The default function returns `false`.
    init(
        _ policy: FreshnessPolicy, _ clock: CacheClock, sharing request: HTTPFields? = nil,
        mayBeLive: @escaping @Sendable () -> Bool = { false }
    ) {
        self.policy = policy
        self.clock = clock
        self.mayBeLive = mayBeLive
        requesterHash = request.map(StoredFreshness.requesterHash)
    }

    // MARK: - Use

    /// The number of the last opening to which a request that is sent now applies. The value is `nil` if such a request
    /// applies to all openings before its response, because all requests come from one user.
    ///
    /// A later opening may use the response only if the response is fresh (RFC 9111 §4).
    var openingsOfRequest: Int? { requesterHash == nil ? nil : state.withLock { $0.openings } }

    /// Records that the resource has been opened.
    ///
    /// - Returns: The number of this opening, starting at 1.
    func recordOpening() -> Int {
        state.withLock { state in
            state.openings += 1
            return state.openings
        }
    }

    /// Returns how the current version may be used now.
    ///
    /// - Parameters:
    ///   - opening: The number that ``recordOpening()`` returned when the player opened the resource.
    ///   - directives: The request directives of the client.
    ///   - start: The first byte to use. A live stream has to be received again only if this is byte 0.
    func use(_ opening: Int, _ directives: RequestDirectives = .init(), from start: Int64 = 0) -> StoredFreshness.Use {
        let isLive = policy == .immutable && start == 0 && mayBeLive()
        let now = clock.elapsed()
        return state.withLock { state in
            let validatedAt = state.validated.flatMap { $0.opening >= opening ? $0.at : nil }
            if state.stored?.exclusion == .error { return validatedAt == nil ? .validate : .fresh }
            switch policy {
            case .immutable where !isLive: return .fresh
            case .immutable, .revalidate: return validatedAt == nil ? .validate : .fresh
            case .http:
                if let validatedAt, now - validatedAt <= Self.useTime { return .fresh }
                return state.stored?.use(at: clock.secondsSince1970(), for: directives) ?? .validate
            }
        }
    }

    /// Returns whether the current version is an error that was received for an earlier opening.
    func isEarlierError(at opening: Int) -> Bool {
        state.withLock { state in
            state.stored?.exclusion == .error && state.validated.map { $0.opening < opening } ?? true
        }
    }

    /// The freshness of the stored response, or `nil` if it is not known.
    var current: StoredFreshness? { state.withLock { $0.stored } }

    /// Returns whether the version may be used even though the origin did not validate it.
    func mayBeStale(after failure: StoredFreshness.Failure) -> Bool {
        let now = clock.secondsSince1970()
        return state.withLock { $0.stored?.mayBeStale(after: failure, at: now, for: requesterHash) ?? true }
    }

    // MARK: - Changes

    /// Records the freshness of the stored version after that version has been opened.
    func recordOpened(_ stored: StoredFreshness?) { state.withLock { $0.stored = stored } }

    /// Records that the origin has sent or confirmed the version.
    ///
    /// - Parameter openings: The number of the last opening to which the response applies; see ``openingsOfRequest``.
    /// - Returns: Whether the freshness has changed.
    @discardableResult
    func confirm(_ freshness: StoredFreshness, for openings: Int?) -> Bool {
        let elapsed = clock.elapsed()
        return state.withLock { state in
            state.validated = (elapsed, openings ?? state.openings)
            defer { state.stored = freshness }
            return state.stored != freshness
        }
    }

    /// Sets the freshness of the version, according to a response that does not confirm the version for any opening.
    ///
    /// - Returns: Whether the freshness has changed.
    func adopt(_ freshness: StoredFreshness) -> Bool {
        state.withLock { state in
            defer { state.stored = freshness }
            return state.stored != freshness
        }
    }

    /// Limits how long the version may be used. Earlier confirmations no longer count.
    func limit(to freshness: StoredFreshness) {
        state.withLock { state in
            state.stored = freshness
            state.validated = nil
        }
    }

    /// Records the start of a revalidation in the background. Returns `false` if a revalidation is already in progress.
    func beginRevalidation() -> Bool {
        state.withLock { state in
            defer { state.isRevalidating = true }
            return !state.isRevalidating
        }
    }

    func endRevalidation() { state.withLock { $0.isRevalidating = false } }
}

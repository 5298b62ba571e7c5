import HTTPRanges
import SpoolStorage
import Synchronization

/// Under ``FreshnessPolicy/http`` requests with different fields may get different bytes, so each has an open resource of
/// its own. Most fields select nothing (`User-Agent`, what proxies add), which is known when a response has come.
extension MediaCache {
    /// The most open resources of one key that are looked at.
    private static let lookLimit = 16

    /// Opens a media file as somebody else has it open already, where his response would have been sent to this source,
    /// too (RFC 9111 §4.1): then both bring each byte once. Else as ``media(for:)`` does, for whoever asks at once.
    ///
    /// Where somebody has just asked, his response is waited for, once: where it can't be shared, nobody else's is. What is
    /// asked of the origin through what is shared is asked with the fields of whoever opened it: no other's variant comes
    /// into it. Another version may vary by more: whoever shares looks at the head that he gets, by
    /// ``StoredResponse/isSelected(by:)``.
    ///
    /// - Throws: `CancellationError`.
    package func sharedMedia(for source: MediaSource, demand: FreshnessDemand = .init()) async throws -> MediaResource {
        guard freshness == .http, source.resolver == nil, !demand.onlyIfCached, !demand.noStore else {
            return media(for: source)
        }
        let own = identity(of: source)
        let credentials = credentials(of: source)
        var passed: Set<OpenResources.Identity> = []
        var variants: [StoredResponse] = []
        var mayWait = true
        context.opening.begin()
        while passed.count < Self.lookLimit {
            let found = resources.acquire(own, orAnyBut: passed) {
                OpenResource(key: own.key, credentials: credentials, context: context)
            }
            guard let (identity, resource) = found else { break }
            let isOwn = identity == own
            let media = MediaResource(
                identity: identity, credentials: isOwn ? credentials : resource.scheduler.look { $0.credentials },
                resource: resource, registry: resources, question: isOwn ? resource.question() : nil,
                isShared: !isOwn)
            if media.isShared {
                let others = media.source.headerFields
                let isAlike = variants.allSatisfy { $0.selection(by: others) == $0.selection(by: source.headerFields) }
                let variant = try await resource.keptResponse(waiting: mayWait && isAlike)
                guard let variant, variant.isSelected(by: source) else {
                    passed.insert(identity)
                    if let variant { variants.append(variant) } else { mayWait = false }
                    continue
                }
            }
            resource.note(source)
            return media
        }
        return media(for: source)
    }
}

extension OpenResource {
    /// Somebody is about to ask the origin, or asks it, until this is released.
    final class Question: Sendable {
        private let resource: OpenResource

        init(of resource: OpenResource) {
            self.resource = resource
            resource.state.withLock { $0.questions += 1 }
        }

        deinit {
            resource.state.withLock { $0.questions -= 1 }
            resource.endWaitsForHead()
        }
    }

    fileprivate func question() -> Question { Question(of: self) }

    /// Those who do not read, but wait for what those who do are told, look again.
    func endWaitsForHead() {
        for wait in state.withLock({ exchange(&$0.headWaits, with: []) }) { wait.finish() }
    }

    /// The response whose bytes are kept; nil where there is none, or they are not.
    ///
    /// - Parameter isWaiting: Whether to wait for it while somebody asks.
    /// - Throws: `CancellationError`.
    fileprivate func keptResponse(waiting isWaiting: Bool) async throws -> StoredResponse? {
        while true {
            if let generation { return generation.isKept ? describedResponse(of: generation) : nil }
            guard isWaiting else { return nil }
            let (end, ended) = AsyncStream.makeStream(of: Void.self)
            let isAsked = state.withLock { state in
                if state.questions > 0 { state.headWaits.append(ended) }
                return state.questions > 0
            }
            guard isAsked else { return nil }
            // It may have come before it was certain that its coming is told.
            if generation != nil { continue }
            for await _ in end {}
            try Task.checkCancellation()
        }
    }
}

package import Foundation
package import HTTPTypes
import Synchronization

/// Where a presentation of many files comes from, HLS or DASH: the source of its manifest, and of what that names.
///
/// What the source sends goes to its own origin alone (RFC 9110 §4.3.1): a manifest can name any host, and none but the
/// one that they are for may see credentials. A resolver is asked once for all files, and once more for a refusal.
package final class PresentationSource: Sendable {
    /// The source of the manifest.
    package let source: MediaSource

    private struct Resolved: Sendable {
        var request: ResolvedRequest
        var number: Int
    }

    private struct State {
        var resolved: Resolved?
        var resolving: Task<Resolved, any Error>?
    }

    private let now: @Sendable () -> Date
    private let state = Mutex(State())

    /// - Parameter now: The calendar by which requests expire: the cache's.
    package init(_ source: MediaSource, now: @escaping @Sendable () -> Date) {
        self.source = source
        self.now = now
    }

    /// The source of a file of the presentation; of the manifest itself where that is at `url`.
    ///
    /// - Parameter fields: What else is sent, whatever the origin; a field that the source sends goes before.
    package func part(at url: URL, sending fields: HTTPFields = [:]) -> MediaSource {
        let key = url.absoluteString == source.url.absoluteString ? source.key : nil
        guard let resolver = source.resolver else {
            let own = url.isSameOrigin(as: source.url) ? source.headerFields : [:]
            return MediaSource(url: url, key: key, headerFields: fields.replaced(by: own))
        }
        let isManifest = url.absoluteString == source.url.absoluteString
        let last = Mutex(-1)
        return MediaSource(url: url, key: key, resolver: resolver) { [self] reason in
            let refused: Int? = if case .refused = reason { last.withLock { $0 } } else { nil }
            let resolved = try await resolved(reason, since: refused)
            last.withLock { $0 = resolved.number }
            let request = resolved.request
            let own = isManifest || url.isSameOrigin(as: request.url) ? request.headerFields : [:]
            return ResolvedRequest(
                url: isManifest ? request.url : url, headerFields: fields.replaced(by: own),
                expiration: request.expiration)
        }
    }

    /// What the resolver gives: what it gave already, unless that has expired or was refused.
    private func resolved(_ reason: MediaSource.Reason, since refused: Int?) async throws -> Resolved {
        let task = state.withLock { state in
            if let resolving = state.resolving { return resolving }
            var reason = reason
            if let known = state.resolved {
                if let expiration = known.request.expiration, expiration <= now() {
                    reason = .expired
                } else if refused.map({ known.number > $0 }) ?? true {
                    return Task { known }
                }
            }
            let number = (state.resolved?.number ?? -1) + 1
            let task = Task { [source, reason] in
                do {
                    let resolved = Resolved(request: try await source.resolve(reason), number: number)
                    self.state.withLock { ($0.resolved, $0.resolving) = (resolved, nil) }
                    return resolved
                } catch {
                    self.state.withLock { $0.resolving = nil }
                    throw error
                }
            }
            state.resolving = task
            return task
        }
        return try await task.value
    }
}

extension URL {
    /// Whether both have the same scheme, host and port, the default port spelt out or not (RFC 9110 §4.3.1).
    fileprivate func isSameOrigin(as other: URL) -> Bool {
        func origin(_ url: URL) -> [String] {
            let scheme = url.scheme?.lowercased() ?? ""
            let port = url.port ?? ["http": 80, "https": 443][scheme]
            return [scheme, url.host?.lowercased() ?? "", port.map(String.init) ?? ""]
        }
        return origin(self) == origin(other)
    }
}

extension HTTPFields {
    /// These fields, with those of `others` in place of what has the same name.
    fileprivate func replaced(by others: HTTPFields) -> HTTPFields {
        var fields = self
        for field in others { fields[field.name] = nil }
        for field in others { fields.append(field) }
        return fields
    }
}

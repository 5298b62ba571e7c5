package import Foundation
package import HTTPTypes
import Synchronization

/// A value that several sources need for requests, such as an account's token or a link. It is resolved once for all of
/// them.
///
/// If several transfers are rejected at the same time, the value is resolved again only once. Any task may use this
/// object.
package final class SharedResolution<Value: Sendable>: Sendable {
    private struct Resolved: Sendable {
        var value: Value
        var number: Int
    }

    private struct State {
        var resolved: Resolved?
        var resolving: Task<Resolved, any Error>?
    }

    /// One source's access to the value. It records the last value that it returned, so that the rejection of a
    /// replaced value does not cause another resolution.
    package final class Share: Sendable {
        private let shared: SharedResolution
        private let last = Mutex(-1)

        fileprivate init(_ shared: SharedResolution) { self.shared = shared }

        /// Returns the value, which is resolved if there is none, if it has expired, or if the last value that this
        /// object returned was rejected.
        ///
        /// - Throws: Any error that the resolution throws.
        package func value(_ reason: MediaSource.ResolutionReason) async throws -> Value {
            let refused: Int? = if case .refused = reason { last.withLock { $0 } } else { nil }
            let resolved = try await shared.resolved(reason, since: refused)
            last.withLock { $0 = resolved.number }
            return resolved.value
        }
    }

    private let now: @Sendable () -> Date
    private let expiration: @Sendable (Value) -> Date?
    private let resolve: @Sendable (MediaSource.ResolutionReason) async throws -> Value
    private let state = Mutex(State())

    /// Creates a value that is resolved when it is first needed.
    ///
    /// - Parameters:
    ///   - now: A function that returns the current date, to check the expiration.
    ///   - expiration: A function that returns the time at which a value expires; `nil` if it is valid until it is
    ///     rejected.
    ///   - resolve: A function that resolves a value.
    package init(
        now: @escaping @Sendable () -> Date, expiration: @escaping @Sendable (Value) -> Date?,
        resolve: @escaping @Sendable (MediaSource.ResolutionReason) async throws -> Value
    ) {
        self.now = now
        self.expiration = expiration
        self.resolve = resolve
    }

    /// Returns an object through which one source uses the value.
    package func makeShare() -> Share { Share(self) }

    private func resolved(_ reason: MediaSource.ResolutionReason, since refused: Int?) async throws -> Resolved {
        let (known, task) = state.withLock { state -> (Resolved?, Task<Resolved, any Error>?) in
            if let resolving = state.resolving { return (nil, resolving) }
            var reason = reason
            if let known = state.resolved {
                if let expiration = expiration(known.value), expiration <= now() {
                    reason = .expired
                } else if refused.map({ known.number > $0 }) ?? true {
                    return (known, nil)
                }
            }
            let number = (state.resolved?.number ?? -1) + 1
            let task = Task { [reason] in
                do {
                    let resolved = Resolved(value: try await resolve(reason), number: number)
                    self.state.withLock { ($0.resolved, $0.resolving) = (resolved, nil) }
                    return resolved
                } catch {
                    self.state.withLock { $0.resolving = nil }
                    throw error
                }
            }
            state.resolving = task
            return (nil, task)
        }
        if let known { return known }
        guard let task else { throw CancellationError() }
        return try await task.value
    }
}

/// The source of an HLS or DASH presentation, which consists of a manifest and the files that it lists.
///
/// The source's fields are sent only to its own origin (RFC 9110 §4.3.1). Other origins receive only the fields that
/// describe the client, such as `User-Agent`, and the origin of the page in `Referer`. A manifest can name any host,
/// which must not receive the credentials. A resolver is called once for all files, and again after a rejection or the
/// expiration. Cookies that an origin sets with one file are sent with the requests for the other files, as
/// ``CookieJar`` allows.
package final class PresentationSource: Sendable {
    /// The source of the manifest.
    package let source: MediaSource

    private let resolution: SharedResolution<ResolvedRequest>

    /// Creates the source of a presentation from the source of its manifest.
    ///
    /// - Parameter now: A function that returns the current date of the cache, to check expirations.
    package init(_ source: MediaSource, now: @escaping @Sendable () -> Date) {
        self.source = source
        resolution = SharedResolution(now: now, expiration: \.expiration) { try await source.resolve($0) }
    }

    /// Returns the source of a file of the presentation, or of the manifest itself.
    ///
    /// - Parameter fields: Additional fields for any origin. At the manifest's origin, the source's fields override
    ///   them. At other origins, they override the source's fields.
    package func part(at url: URL, sending fields: HTTPFields = [:]) -> MediaSource {
        var part = requested(at: url, sending: fields)
        part.cookies = source.cookies
        return part
    }

    private func requested(at url: URL, sending fields: HTTPFields) -> MediaSource {
        let key = url.absoluteString == source.url.absoluteString ? source.key : nil
        guard let resolver = source.resolver else {
            let fields = Self.fields(source.headerFields, of: source.url, for: url, adding: fields)
            return MediaSource(url: url, key: key, headerFields: fields)
        }
        let isManifest = url.absoluteString == source.url.absoluteString
        let share = resolution.makeShare()
        return MediaSource(url: url, key: key, resolver: resolver) { reason in
            let request = try await share.value(reason)
            let url = isManifest ? request.url : url
            let fields = Self.fields(request.headerFields, of: request.url, for: url, adding: fields)
            return ResolvedRequest(url: url, headerFields: fields, expiration: request.expiration)
        }
    }

    /// Returns the fields of the request for a file of the presentation.
    ///
    /// - Parameters:
    ///   - own: The fields of the manifest's request.
    ///   - manifest: The URL of that request.
    ///   - fields: Fields for the file itself, which `own` overrides only at the manifest's origin.
    private static func fields(
        _ own: HTTPFields, of manifest: URL, for url: URL, adding fields: HTTPFields
    ) -> HTTPFields {
        guard !url.isSameOrigin(as: manifest) else { return fields.replaced(by: own) }
        return own.forOtherOrigin(isEncrypted: url.scheme?.lowercased() == "https").replaced(by: fields)
    }
}

extension URL {
    /// Returns whether both URLs have the same scheme, host and port, with or without an explicit default port (RFC
    /// 9110 §4.3.1).
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
    /// Returns these fields, followed by `others`, which replace fields with the same names.
    fileprivate func replaced(by others: HTTPFields) -> HTTPFields {
        var fields = self
        for field in others { fields[field.name] = nil }
        for field in others { fields.append(field) }
        return fields
    }
}

package import Foundation
package import HTTPTypes

/// Where a presentation of many files comes from, HLS or DASH: the source of its manifest, and of what that names.
///
/// What the source sends goes to its own origin alone (RFC 9110 §4.3.1): a manifest can name any host, and none but the
/// one that they are for may see credentials. A resolver is asked once for all files, and once more for a refusal.
package final class PresentationSource: Sendable {
    /// The source of the manifest.
    package let source: MediaSource

    private let resolution: SharedResolution<ResolvedRequest>

    /// - Parameter now: The calendar by which requests expire: the cache's.
    package init(_ source: MediaSource, now: @escaping @Sendable () -> Date) {
        self.source = source
        resolution = SharedResolution(now: now, expiration: \.expiration) { try await source.resolve($0) }
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
        let share = resolution.share()
        return MediaSource(url: url, key: key, resolver: resolver) { reason in
            let request = try await share.value(reason)
            let own = isManifest || url.isSameOrigin(as: request.url) ? request.headerFields : [:]
            return ResolvedRequest(
                url: isManifest ? request.url : url, headerFields: fields.replaced(by: own),
                expiration: request.expiration)
        }
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

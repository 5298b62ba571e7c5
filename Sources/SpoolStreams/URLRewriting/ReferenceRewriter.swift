/// A rewriter of a manifest's references, so that a client of the proxy requests their targets from the proxy.
///
/// For the origin, references are relative to the final URL of the manifest. The client resolves them against the
/// proxy's URL for the URL that it requested. A reference stays unchanged if both URLs result in the same target. The
/// time to rewrite a reference is proportional to its length and the length of the result, even if the manifest has a
/// long path.
package struct ReferenceRewriter {
    /// The URL of the manifest, after redirects. It is the base of relative references.
    let finalURL: OriginURL
    private let baseReference: URIReference
    /// The path of the base up to its last slash, without dot segments.
    private let directory: Substring
    /// The positions in `directory` after each slash. The first position is that of the root.
    private let ends: [String.Index]
    /// The proxy's URL for the manifest, as requested by the client.
    private let location: URIReference
    /// The host of `location`.
    private let locationHost: String?
    /// Whether the client correctly resolves the name of a file in the manifest's directory.
    private let sharesDirectory: Bool
    /// Whether the client correctly resolves a reference that consists of a query only.
    private let sharesPath: Bool
    private let proxied: (OriginURL) -> String

    /// Creates a rewriter.
    ///
    /// - Parameters:
    ///   - finalURL: The URL of the manifest, after redirects.
    ///   - requestedURL: The URL that the client requested, if it differs.
    ///   - isMoved: Whether the client requested a URL of the proxy other than the one that `proxied` returns. If so,
    ///     relative references are rewritten as well. The default is `false`.
    ///   - proxied: A function that returns the proxy's URL for an origin's URL. The result is a path that starts with
    ///     `/` and ends with the path and query of the origin's URL. If the proxy does not serve a URL, the result is
    ///     that URL. By default, the proxy does not serve any URL.
    package init(
        finalURL: OriginURL, requestedURL: OriginURL? = nil, isMoved: Bool = false,
        proxied: @escaping (OriginURL) -> String = { $0.description }
    ) {
        let requestedURL = requestedURL ?? finalURL
        let path = { (url: OriginURL) in URIReference.removingDotSegments(url.reference.path) }
        let directory = { (path: Substring) in path[...(path.utf8.lastIndex(of: UInt8(ascii: "/")) ?? path.startIndex)]
        }
        self.finalURL = finalURL
        baseReference = finalURL.reference
        let finalPath = path(finalURL)
        self.directory = directory(finalPath)
        ends = self.directory.utf8.indices.filter { finalPath.utf8[$0] == UInt8(ascii: "/") }.map {
            finalPath.utf8.index(after: $0)
        }
        // Only the path of the proxy matters, because manifests do not contain its host.
        location = URIReference(proxied(requestedURL)).resolved(against: URIReference("http://proxy.invalid/"))
        locationHost = location.authority.flatMap { try? HostAndPort($0).host }  // `nil` differs from every host.
        let sharesOrigin =
            !isMoved && requestedURL.scheme == finalURL.scheme && requestedURL.authority == finalURL.authority
        sharesPath = sharesOrigin && finalPath == path(requestedURL)
        sharesDirectory = sharesOrigin && self.directory == directory(path(requestedURL))
        self.proxied = proxied
    }

    /// The maximum sizes of the path of a base in a manifest, and of that path together with the query, in bytes.
    ///
    /// A manifest may contain many bases, and the time to create a rewriter is proportional to the size of its base.
    private static let maximumBase = (path: 2048, target: 8192)

    /// Returns a rewriter for references that are relative to a different base, such as a `BaseURL` in DASH. The client
    /// resolves them correctly if it requests the base from the proxy.
    ///
    /// - Returns: `nil` if the base cannot be requested through the proxy or is too long.
    func relative(to reference: String) -> ReferenceRewriter? {
        let limit = Self.maximumBase
        guard directory.utf8.count <= limit.path, let target = target(URIReference(reference)),
            target.target.utf8.count <= limit.target,
            target.target.utf8.prefix(while: { $0 != UInt8(ascii: "?") }).count <= limit.path
        else { return nil }
        return ReferenceRewriter(finalURL: target, proxied: proxied)
    }

    /// The number of directories in the path of the base.
    var depth: Int { ends.count - 1 }

    /// Whether the client resolves file names in the manifest's directory incorrectly, because of a redirect.
    var movesRelativeReferences: Bool { !sharesDirectory }

    /// The URL at which a client requests the manifest itself, after redirects.
    var manifest: String { proxied(finalURL) }

    /// Returns the target of a reference, or `nil` if it cannot be requested through the proxy.
    package func url(of reference: String) -> OriginURL? { target(URIReference(reference)) }

    /// Returns the replacement for a reference, or `nil` if it stays unchanged.
    ///
    /// A reference stays unchanged if the client resolves it correctly, or if the proxy cannot request it (`skd:`,
    /// `data:`, URLs with a password). A reference that is empty, or only a fragment, denotes the manifest itself and
    /// also stays unchanged.
    package func rewritten(_ reference: String) -> String? {
        let parts = URIReference(reference)
        if hasSameTarget(parts) { return nil }
        guard let target = target(parts) else {
            // For a reference without a scheme, the client would use the scheme of the proxy instead of the origin's.
            guard parts.scheme == nil, parts.authority?.utf8.contains(UInt8(ascii: "@")) == true,
                finalURL.scheme == .https
            else { return nil }
            return "https:" + reference[...].encodingWhiteSpace
        }
        let written = proxied(target)
        // A path of the proxy cannot point to another host, so most absolute references do not have to be compared.
        let isPath = written.utf8.starts(with: "/".utf8) && !written.utf8.starts(with: "//".utf8)
        let isElsewhere = isPath && parts.authority != nil && target.host != locationHost
        if !parts.isRelativePath, !isElsewhere {
            // If the URL cannot be parsed, the reference does not point to the target. The reason does not matter.
            let seen = try? OriginURL(parts.resolved(against: location))
            if let seen, seen == (try? OriginURL(URIReference(written).resolved(against: location))) { return nil }
        }
        return parts.fragment.map { "\(written)#\($0.encodingWhiteSpace)" } ?? written
    }

    /// Returns the replacement for a reference even if the client resolves it correctly, or `nil` if its target cannot
    /// be requested through the proxy.
    func written(_ reference: String) -> String? {
        let parts = URIReference(reference)
        guard let written = target(parts).map(proxied) else { return nil }
        return parts.fragment.map { "\(written)#\($0.encodingWhiteSpace)" } ?? written
    }

    /// Returns whether a relative reference has the same target for the client and for the origin.
    private func hasSameTarget(_ parts: URIReference) -> Bool {
        guard parts.isRelativePath else { return false }
        if parts.path.isEmpty { return parts.query == nil || sharesPath }
        return sharesDirectory && !escapesRoot(parts.path)
    }

    /// Returns the target of a reference, or `nil` if it cannot be requested through the proxy. Callers do not need the
    /// reason.
    private func target(_ parts: URIReference) -> OriginURL? {
        guard parts.isRelativePath, !parts.path.isEmpty else {
            return try? OriginURL(parts.resolved(against: baseReference))
        }
        var absolute = baseReference
        absolute.path = merged(parts.path)
        absolute.query = parts.query
        return try? OriginURL(resolved: absolute)
    }

    /// Returns whether a relative path refers to a directory above the origin's root, where the proxy has other paths.
    private func escapesRoot(_ path: Substring) -> Bool {
        var depth = ends.count - 1
        for segment in path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
            switch DotSegment(segment) {
            case .parent:
                depth -= 1
                if depth < 0 { return true }
            case .current: break
            case nil: depth += 1
            }
        }
        return false
    }

    /// Returns the absolute path for a relative path (RFC 3986 §5.2.3 and §5.2.4 in one step).
    private func merged(_ path: Substring) -> Substring {
        var depth = ends.count - 1
        var kept: [Substring.UTF8View.SubSequence] = []
        var segments = path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        if let last = segments.last, DotSegment(last) != nil { segments.append(last.prefix(0)) }
        for segment in segments.dropLast() {
            switch DotSegment(segment) {
            case .parent:
                if !kept.isEmpty { kept.removeLast() } else if depth > 0 { depth -= 1 }
            case .current: break
            case nil: kept.append(segment)
            }
        }
        var text = String(directory[..<ends[depth]])
        for segment in kept { text += Substring(segment) + "/" }
        if let name = segments.last { text += Substring(name) }
        return text[...]
    }
}

extension URIReference {
    /// Whether the reference has no scheme, no host and no absolute path.
    fileprivate var isRelativePath: Bool { scheme == nil && authority == nil && path.utf8.first != UInt8(ascii: "/") }
}

#if Proxy
/// Says what a manifest's references have to become, so that a client that got the manifest from the proxy asks the proxy
/// for what they mean.
///
/// References are resolved against the URL at which the manifest was found in the end, and the client resolves them against
/// the proxy's address of what it asked for. A reference is left alone exactly if that gives the right thing anyway.
/// Each takes time proportional to its length and its outcome's, however long the manifest's own path is.
package struct ReferenceRewriter {
    /// What relative references mean: the final URL.
    private let base: OriginURL
    private let baseReference: URIReference
    /// The base's path up to its last slash, dot segments resolved.
    private let directory: Substring
    /// Where in `directory` its segments end, each with its slash: the root's first.
    private let ends: [String.Index]
    /// Where the client believes the manifest to be.
    private let location: URIReference
    /// Whether a reference to a name in the manifest's directory is right as it is, and one that has but a query.
    private let sharesDirectory: Bool
    private let sharesPath: Bool
    private let proxied: (OriginURL) -> String

    /// - Parameters:
    ///   - finalURL: Where the manifest was found, after redirects.
    ///   - requestedURL: What the client asked for, if that is another URL.
    ///   - proxied: What a client that has its manifest from the proxy is to ask for a URL: a path of the proxy, beginning
    ///     with `/`, or the URL itself if it is not for the proxy. In either form of address the path of the proxy must
    ///     end with the URL's own path and query.
    package init(finalURL: OriginURL, requestedURL: OriginURL? = nil, proxied: @escaping (OriginURL) -> String) {
        let requestedURL = requestedURL ?? finalURL
        let path = { (url: OriginURL) in URIReference.removingDotSegments(url.reference.path) }
        let directory = { (path: Substring) in path[...(path.utf8.lastIndex(of: UInt8(ascii: "/")) ?? path.startIndex)]
        }
        base = finalURL
        baseReference = finalURL.reference
        let finalPath = path(finalURL)
        self.directory = directory(finalPath)
        ends = self.directory.utf8.indices.filter { finalPath.utf8[$0] == UInt8(ascii: "/") }.map {
            finalPath.utf8.index(after: $0)
        }
        // What the client sees of the proxy but for its path does not matter: no manifest names it.
        location = URIReference(proxied(requestedURL)).resolved(against: URIReference("http://proxy.invalid/"))
        let sharesOrigin = requestedURL.scheme == finalURL.scheme && requestedURL.authority == finalURL.authority
        sharesPath = sharesOrigin && finalPath == path(requestedURL)
        sharesDirectory = sharesOrigin && self.directory == directory(path(requestedURL))
        self.proxied = proxied
    }

    /// The rewriter of what is relative to `reference` instead: an element of DASH's `BaseURL`.
    ///
    /// - Parameter maximumPath: The most bytes that the base's path may have: a manifest can have many bases, and making a
    ///   rewriter takes time proportional to it.
    /// - Returns: Nil if what the reference means can't be asked through the proxy, or has a longer path.
    package func relative(to reference: String, maximumPath: Int = 2048) -> ReferenceRewriter? {
        guard directory.utf8.count <= maximumPath, let target = target(URIReference(reference)),
            target.target.utf8.prefix(while: { $0 != UInt8(ascii: "?") }).count <= maximumPath
        else { return nil }
        return ReferenceRewriter(finalURL: target, proxied: proxied)
    }

    /// Whether a client takes names in the manifest's directory for the wrong thing, because of a redirect.
    package var movesRelativeReferences: Bool { !sharesDirectory }

    /// What a client is to ask for the manifest itself, where it really is.
    package var manifest: String { proxied(base) }

    /// The URL that a reference means; nil if it is none that can be asked through the proxy.
    package func url(of reference: String) -> OriginURL? { target(URIReference(reference)) }

    /// What to write in a reference's place; nil to leave it as it is: it is right, means nothing that the proxy could ask
    /// for (`skd:`, `data:`, a user's password), or can't be understood. An empty one, or one that has but a fragment, means
    /// the manifest itself, which the client finds where it did before.
    package func rewritten(_ reference: String) -> String? {
        let parts = URIReference(reference)
        if isRight(parts) { return nil }
        guard let target = target(parts) else {
            // A client would take the proxy's scheme for the origin's.
            guard parts.scheme == nil, parts.authority?.utf8.contains(UInt8(ascii: "@")) == true, base.scheme == .https
            else { return nil }
            return "https:" + reference[...].encodingWhiteSpace
        }
        let written = proxied(target)
        if !parts.isRelativePath {
            // An address that can't be read is none that the reference leads to: no reason is lost.
            let seen = try? OriginURL(parts.resolved(against: location))
            if let seen, seen == (try? OriginURL(URIReference(written).resolved(against: location))) { return nil }
        }
        return parts.fragment.map { "\(written)#\($0.encodingWhiteSpace)" } ?? written
    }

    /// What to write for a reference, be it right as it is or not; nil if it can't be asked through the proxy.
    package func written(_ reference: String) -> String? {
        let parts = URIReference(reference)
        guard let written = target(parts).map(proxied) else { return nil }
        return parts.fragment.map { "\(written)#\($0.encodingWhiteSpace)" } ?? written
    }

    /// Whether a relative reference means for the client what it means for the origin.
    private func isRight(_ parts: URIReference) -> Bool {
        guard parts.isRelativePath else { return false }
        if parts.path.isEmpty { return parts.query == nil || sharesPath }
        return sharesDirectory && !climbs(parts.path)
    }

    /// The URL that a reference means; nil if it can't be asked through the proxy, where the reason helps nobody.
    private func target(_ parts: URIReference) -> OriginURL? {
        guard parts.isRelativePath, !parts.path.isEmpty else {
            return try? OriginURL(parts.resolved(against: baseReference))
        }
        var absolute = baseReference
        absolute.path = merged(parts.path)
        absolute.query = parts.query
        return try? OriginURL(resolved: absolute)
    }

    /// Whether a relative path tries to climb above the origin's root, where on the proxy there is something.
    private func climbs(_ path: Substring) -> Bool {
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

    /// A relative path as seen from the directory (RFC 3986 §5.2.3 and §5.2.4 in one).
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
    /// Whether it has neither scheme nor host, nor a path from the root.
    fileprivate var isRelativePath: Bool { scheme == nil && authority == nil && path.utf8.first != UInt8(ascii: "/") }
}
#endif

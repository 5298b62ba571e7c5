import SpoolTesting

/// A resource at the origin in a sharing test: the reuse that its responses permit, and the request fields on which
/// they depend.
struct SharedPage: Sendable {
    enum Kind: Sendable {
        /// Each response has its own bytes, which identify the request that caused it.
        case stamped
        /// A playlist with its own bytes in each response. The server remembers the rewritten bytes of large playlists.
        case playlist
        /// All responses have the same bytes and permit sharing. Clients request the whole resource.
        case media
        /// The same as ``media``, but clients request parts.
        case mediaInParts
    }

    let path: String
    let kind: Kind
    /// The length of a body, in bytes.
    let length: Int
    let hasTag: Bool
    /// The choices for the directives of a response.
    let directives: [SharingDirectives]
    /// The choices for the request fields that select a response.
    let vary: [[String]]
    let setsCookies: Bool

    var isMedia: Bool { kind == .media || kind == .mediaInParts }

    /// Returns the bytes of a response to a request for the resource.
    func body(_ serial: Int) -> [UInt8] {
        switch kind {
        case .media, .mediaInParts: SharingOrigin.body(0, length: length)
        case .stamped: SharingOrigin.body(serial, length: length)
        case .playlist: SharingOrigin.playlist(serial, length: length)
        }
    }

    /// Creates a random resource. The first two resources are media.
    static func draw(_ number: Int, _ random: inout SplitMix) -> SharedPage {
        if number < 2 || random.chance(6) {
            return SharedPage(
                path: "/\(number)", kind: number % 2 == 0 ? .media : .mediaInParts,
                length: 1 + random.below(150_000),
                hasTag: true, directives: [.forMedia], vary: [[]],
                setsCookies: false)
        }
        let vary = (0..<1 + random.below(2)).map { _ in
            random.pick([
                [], [], [], ["accept-language"], ["x-user"], ["accept-language", "x-user"], ["*"],
                ["cookie"],
            ])
        }
        let hasTag = random.chance(2)
        let isPlaylist = random.chance(4)
        return SharedPage(
            path: isPlaylist ? "/\(number).m3u8" : "/\(number)", kind: isPlaylist ? .playlist : .stamped,
            length: isPlaylist ? random.pick([300, 70_000, 90_000]) : random.pick([40, 300, 3000, 40_000, 70_000]),
            hasTag: hasTag,
            directives: (0..<1 + random.below(2)).map { _ in .draw(&random, hasTag: hasTag) }, vary: vary,
            setsCookies: random.chance(3))
    }
}

/// The directives of a response that determine whether a shared cache may reuse it.
struct SharingDirectives: Sendable {
    /// The directives without a value.
    var flags: Set<String> = []
    var maxAge: Int?
    var sharedMaxAge: Int?
    var staleWhileRevalidate: Int?
    /// The age of the representation in seconds. A cache may estimate a lifetime from it.
    var modifiedAge: Int?
    /// The directive that lists `Set-Cookie` as its argument; `nil` if there is none.
    var naming: String?

    static let forMedia = SharingDirectives(flags: ["public"], maxAge: 1_000_000)

    /// The value of `Cache-Control`; `nil` if there are no directives.
    var text: String? {
        var parts = flags.sorted()
        if let maxAge { parts.append("max-age=\(maxAge)") }
        if let sharedMaxAge { parts.append("s-maxage=\(sharedMaxAge)") }
        if let staleWhileRevalidate { parts.append("stale-while-revalidate=\(staleWhileRevalidate)") }
        if let naming { parts.append("\(naming)=\"Set-Cookie\"") }
        return parts.isEmpty ? nil : parts.joined(separator: ", ")
    }

    /// - Parameter hasTag: Whether the response has an entity tag. If so, all directives of the response are in
    ///   `Cache-Control`, so that each 304 replaces all of them.
    static func draw(_ random: inout SplitMix, hasTag: Bool) -> SharingDirectives {
        var drawn = SharingDirectives()
        if random.chance(6) { drawn.flags.insert(random.pick(["private", "no-store", "no-cache"])) }
        if random.chance(2) { drawn.flags.insert("public") }
        if random.chance(6) {
            drawn.flags.insert(random.pick(["must-revalidate", "proxy-revalidate"]))
        }
        if !random.chance(3) { drawn.maxAge = random.pick([0, 1, 5, 60, 1000]) }
        if random.chance(5) { drawn.sharedMaxAge = random.pick([0, 5, 60]) }
        if random.chance(8) { drawn.staleWhileRevalidate = random.pick([5, 100]) }
        if !hasTag, random.chance(4) { drawn.modifiedAge = random.pick([0, 100, 10_000]) }
        if random.chance(8) { drawn.naming = random.pick(["private", "no-cache"]) }
        if hasTag, drawn.text == nil { drawn.maxAge = 0 }
        return drawn
    }
}

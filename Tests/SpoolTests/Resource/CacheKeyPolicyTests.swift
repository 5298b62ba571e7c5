import Foundation
import SpoolTesting
import Testing

@testable import Spool

/// Tests of the keys of resources: two resources never share a key, and no name is used as a path.
@Suite("Cache keys and their policies", .timeLimit(.minutes(10)))
struct CacheKeyPolicyTests {
    /// Two URLs, and whether a policy treats them as one resource.
    struct Pair: Sendable, CustomTestStringConvertible {
        var policy: Policy
        var one: String
        var other: String
        var isSame: Bool

        init(_ policy: Policy, _ one: String, _ sign: Sign, _ other: String) {
            (self.policy, self.one, self.other, isSame) = (policy, one, other, sign == .is)
        }

        var testDescription: String {
            "\(policy): \(one.prefix(60)) \(isSame ? "is" : "is not") \(other.prefix(60))"
        }
    }

    enum Sign { case `is`, isNot }

    enum Policy: CaseIterable {
        case url, unsigned, unsignedAnywhere

        var policy: CacheKeyPolicy {
            switch self {
            case .url: .url
            case .unsigned: .ignoring(queryItems: ["Expires", "Signature", "token"])
            case .unsignedAnywhere: .ignoring(queryItems: ["Expires", "Signature", "token"]).ignoringHost()
            }
        }
    }

    private static let long = String(repeating: "x", count: 3000)

    static let pairs: [Pair] = [
        // Case is significant in a path and a query, but not in a scheme and a host (RFC 3986 §6.2.2.1).
        Pair(.url, "http://h/a", .isNot, "http://h/A"), Pair(.url, "http://h/?a", .isNot, "http://h/?A"),
        Pair(.url, "HTTP://H.Example/a", .is, "http://h.example/a"),
        Pair(.url, "http://h/%C3%A9", .isNot, "http://h/%c3%a9"),
        // All other parts of a URL are significant, except a fragment, a user and a password.
        Pair(.url, "http://h/a", .isNot, "https://h/a"), Pair(.url, "http://h/a", .isNot, "http://h:8080/a"),
        Pair(.url, "http://h/a", .isNot, "http://i/a"), Pair(.url, "http://h/a", .isNot, "http://h/a/"),
        Pair(.url, "http://h/a", .isNot, "http://h/a?"), Pair(.url, "http://h/?b=1&c=2", .isNot, "http://h/?c=2&b=1"),
        Pair(.url, "http://h/a#t=10", .is, "http://h/a"), Pair(.url, "http://u:p@h/a", .is, "http://h/a"),
        // Path segments are not resolved, and escapes are not decoded, because only the origin knows their meaning.
        Pair(.url, "http://h/a/../b", .isNot, "http://h/b"),
        Pair(.url, "http://h/../../etc/passwd", .isNot, "http://h/etc/passwd"),
        Pair(.url, "http://h/%2e%2e/b", .isNot, "http://h/../b"), Pair(.url, "http://h/a%2Fb", .isNot, "http://h/a/b"),
        Pair(.url, "http://h//a", .isNot, "http://h/a"), Pair(.url, "http://h/a%20b", .isNot, "http://h/a+b"),
        Pair(.url, "http://h/a%00b", .isNot, "http://h/a%00c"), Pair(.url, "http://h/a%00", .isNot, "http://h/a"),
        Pair(.url, "http://h/a\0b", .is, "http://h/a%00b"),
        // The Unicode form and the ASCII form of a host name are equal.
        Pair(.url, "http://h/🎧", .isNot, "http://h/🎬"), Pair(.url, "http://h/🎧", .is, "http://h/%F0%9F%8E%A7"),
        Pair(.url, "http://h/\u{E9}", .isNot, "http://h/e\u{301}"),
        Pair(.url, "http://bücher.example/a", .is, "http://xn--bcher-kva.example/a"),
        Pair(.url, "http://bücher.example/a", .isNot, "http://bucher.example/a"),
        // URLs of any length.
        Pair(.url, "http://h/\(long)", .isNot, "http://h/\(long)x"),
        Pair(.url, "http://h/?\(long)a", .isNot, "http://h/?\(long)b"),
        // Signatures are ignored at any position. All other items count, in their order.
        Pair(.unsigned, "http://h/a?Signature=1&Expires=2", .is, "http://h/a"),
        Pair(.unsigned, "http://h/a?token=1&b=2", .is, "http://h/a?b=2&TOKEN=3"),
        Pair(.unsigned, "http://h/a?token", .is, "http://h/a?token="),
        Pair(.unsigned, "http://h/a?b=1", .isNot, "http://h/a?b=2"),
        Pair(.unsigned, "http://h/a?b", .isNot, "http://h/a?b="),
        Pair(.unsigned, "http://h/a?b=1&c=2", .isNot, "http://h/a?c=2&b=1"),
        Pair(.unsigned, "http://h/a?b=1&b=1", .isNot, "http://h/a?b=1"),
        Pair(.unsigned, "http://h/a?mytoken=1", .isNot, "http://h/a?mytoken=2"),
        Pair(.unsigned, "http://h/a?b=%26token=1", .isNot, "http://h/a?b=%26token=2"),
        Pair(.unsigned, "http://h/token=1", .isNot, "http://h/token=2"),
        Pair(.unsigned, "http://h/a?x=%zz&token=1", .is, "http://h/a?token=2&x=%zz"),
        Pair(.unsigned, "http://h/a?b[]=1|2&token=1", .is, "http://h/a?b[]=1|2"),
        Pair(.unsigned, "http://h/a?token=1#f", .is, "http://h/a"), Pair(.unsigned, "http://h/a", .isNot, "http://i/a"),
        Pair(.unsigned, "HTTP://H/a?token=1", .is, "http://h/a"),
        Pair(.unsignedAnywhere, "https://cdn1.example:8443/a?token=1", .is, "http://cdn2.example/a?token=2#f"),
        Pair(.unsignedAnywhere, "http://h/a", .isNot, "http://h/A"),
        Pair(.unsignedAnywhere, "http://h/a/b", .isNot, "http://a/b"),
        Pair(.unsignedAnywhere, "http://h//a/b", .isNot, "http://h/a/b"),
        Pair(.unsignedAnywhere, "http://h/a?b=1", .isNot, "http://h/a%3Fb=1"),
    ]

    @Test("C41: different URLs have different keys, except for the parts that a policy ignores", arguments: pairs)
    func pair(_ pair: Pair) throws {
        let (one, other) = (try #require(URL(string: pair.one)), try #require(URL(string: pair.other)))
        let policy = pair.policy.policy
        #expect((policy.key(for: one) == policy.key(for: other)) == pair.isSame)
    }

    // MARK: At random

    /// A resource as its origin sees it, in parts that are already escaped.
    private struct Address: Hashable {
        var scheme: String
        var host: String
        var path: String
        var items: [String]
    }

    private static let segments = [
        "a", "A", "..", ".", "", "%2e%2e", "%2F", "%00", "%F0%9F%8E%A7", "%C3%A9", "e%CC%81", "a%20b", "a+b", "a;b",
        "CON",
        "a:b", "a@b", "~", "media", "ab01.media", "token=1", String(repeating: "y", count: 2100),
    ]
    private static let items = [
        "b=1", "b=2", "b", "b=", "B=1", "c=%26", "c=%3D1", "=", "", "c[]=%2F", "d=a+b", "mytoken=1",
    ]
    private static let signatures = ["token=1", "TOKEN=2", "Expires=99", "signature=ab%2Fcd", "token", "Signature="]

    private static func address(_ random: inout SplitMix) -> Address {
        Address(
            scheme: random.pick(["http", "https"]),
            host: random.pick(["h", "i", "h:81", "xn--bcher-kva.example", "[::1]"]),
            path: (0...random.below(3)).map { _ in "/" + random.pick(segments) }.joined(),
            items: (0..<random.below(4)).map { _ in random.pick(items) })
    }

    /// Returns a URL of the resource, with random parts that the policy ignores.
    private static func url(
        _ address: Address, for policy: Policy, _ random: inout SplitMix
    ) throws -> URL {
        var (scheme, host, items) = (address.scheme, address.host, address.items)
        if policy != .url {
            for _ in 0..<random.below(3) {
                items.insert(random.pick(signatures), at: random.below(items.count + 1))
            }
        }
        if policy == .unsignedAnywhere {
            (scheme, host) = (random.pick(["http", "https"]), random.pick(["x", "y:82"]))
        }
        if random.chance(2) { (scheme, host) = (scheme.uppercased(), host.uppercased()) }
        if random.chance(4) { host = "user:pass@" + host }
        let query = items.isEmpty ? "" : "?" + items.joined(separator: "&")
        let fragment = random.chance(3) ? "#t=\(random.below(9))" : ""
        return try #require(URL(string: scheme + "://" + host + address.path + query + fragment))
    }

    @Test(
        "C41: of 20,000 random resources, no two share a key, and each has the same key for all spellings of its URL",
        arguments: Policy.allCases)
    func collisions(_ policy: Policy) throws {
        var random = SplitMix(41)
        var keys: [CacheKey: Address] = [:]
        var addresses: [Address: CacheKey] = [:]
        for _ in 0..<20_000 {
            var address = Self.address(&random)
            // This policy ignores the host.
            if policy == .unsignedAnywhere { (address.scheme, address.host) = ("", "") }
            // A policy that ignores items removes a query that consists of one empty item.
            if policy != .url, address.items == [""] { address.items = [] }
            let url = try Self.url(address, for: policy, &random)
            let key = policy.policy.key(for: url)
            #expect(keys[key] ?? address == address, "\(url) has the key of another")
            #expect(addresses[address] ?? key == key, "\(url) has a second key")
            #expect(key.hash.utf8.count == 64 && key.hash.utf8.allSatisfy(Self.isHexadecimal))
            // The URL without the ignored parts has the same key.
            let kept = try Self.url(address, for: .url, &random)
            if policy != .unsignedAnywhere { #expect(policy.policy.key(for: kept) == key) }
            keys[key] = address
            addresses[address] = key
        }
        #expect(addresses.count > 5000, "there is something to collide")
    }

    private static func isHexadecimal(_ byte: UInt8) -> Bool { (48...57).contains(byte) || (97...102).contains(byte) }

    // MARK: On disk

    @Test("C41: for any names that a policy returns, each resource has its own bytes, and no name becomes a path")
    func files() async throws {
        let names = [
            "a", "A", "..", "../../../../tmp/spool-escaped", "/etc/spool-escaped", "a\0b", "a\0c", "🎧", "🎬",
            "bücher.example", "xn--bcher-kva.example", "a%2Fb", "a/b", "a%2fb", " ", "", "CON", "lock",
            "catalog.sqlite",
            Self.long, Self.long + "x", "\u{E9}", "e\u{301}", "a\nb", "\u{202E}gpm.a",
        ]
        let resources = names.indices.map { ("/\($0)", OriginResource.pattern(70_000, seed: UInt64($0))) }
        let policy = CacheKeyPolicy { url in names[Int(url.lastPathComponent) ?? 0] }
        let stage = try MemoryStage(
            Dictionary(uniqueKeysWithValues: resources), configure: { $0.keyPolicy = policy })
        for isReachable in [true, false] {
            stage.origin.setReachable(isReachable)
            try await stage.session { cache in
                for index in names.indices {
                    let pattern = PatternBytes(seed: UInt64(index), length: 70_000)
                    try await cache.media(for: stage.url("/\(index)")).check(.all, pattern, covers: 0..<70_000)
                }
                #expect(try await cache.storedResources().count == names.count)
            }
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: stage.file("")).sorted() == ["cache-0"])
        let files = FolderTree.paths(under: stage.directory)
        #expect(files.contains("media"))
        let known: Set = [
            "CACHEDIR.TAG", "lock", "catalog.sqlite", "catalog.sqlite-wal", "catalog.sqlite-shm", "media",
        ]
        for file in files where !known.contains(file) {
            let parts = file.split(separator: "/", omittingEmptySubsequences: false)
            #expect(parts.first == "media" && parts.count <= 3, "\(file)")
            let words = parts.dropFirst().map { $0.hasSuffix(".media") ? $0.dropLast(".media".count) : $0 }
            #expect(
                words.allSatisfy { [2, 32].contains($0.utf8.count) && $0.utf8.allSatisfy(Self.isHexadecimal) },
                "\(file)")
        }
        #expect(files.filter { $0.hasSuffix(".media") }.count >= names.count)
        for path in ["/tmp/spool-escaped", "/etc/spool-escaped"] {
            #expect(!FileManager.default.fileExists(atPath: path))
        }
    }

    @Test("A key can be created from its text, directly or with Codable, but not from text in any other form")
    func storedKeys() throws {
        let key = CacheKey("https://media.example/a.mp3")
        #expect(CacheKey(rawValue: key.rawValue) == key)
        #expect(try JSONDecoder().decode([CacheKey].self, from: JSONEncoder().encode([key])) == [key])
        #expect(String(decoding: try JSONEncoder().encode(key), as: UTF8.self) == "\"\(key.rawValue)\"")
        for text in ["", "abc", key.rawValue.uppercased(), key.rawValue + "0", String(key.rawValue.dropLast()) + "g"] {
            #expect(CacheKey(rawValue: text) == nil)
            #expect(throws: DecodingError.self) {
                try JSONDecoder().decode(CacheKey.self, from: JSONEncoder().encode(text))
            }
        }
    }

    @Test("A policy can ignore the entire query, and optionally the host")
    func withoutQuery() throws {
        let urls = try ["https://A.example/a.mp3?x=1", "https://a.example/a.mp3", "http://b.example/a.mp3?y=2"].map {
            try #require(URL(string: $0))
        }
        let keys = urls.map { CacheKeyPolicy.ignoringQuery.key(for: $0) }
        #expect(keys[0] == keys[1] && keys[1] != keys[2])
        #expect(Set(urls.map { CacheKeyPolicy.ignoringQuery.ignoringHost().key(for: $0) }).count == 1)
        let own = CacheKeyPolicy { $0.lastPathComponent }
        #expect(own.ignoringHost().key(for: urls[0]) == own.key(for: urls[0]))
    }
}

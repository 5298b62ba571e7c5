import HTTPTypes
import SpoolOrigin
import SpoolTesting

/// The parts of a request that must reach the origin unchanged: paths, queries and bodies.
extension AdversarialDraft {
    /// Paths and queries in many spellings. Each of them is sent after `/spelt-` and its index.
    static let spellings: [String] =
        [
            "/%41", "/%c3%a9", "/%C3%A9", "/a%2Fb", "/a%2fb", "/%2525", "/a+b%20c", "/a;b=c,d", "/a%3Fb", "/a%23b",
            "/%7Ea~", "/a//b", "/a/", "/:@!$&'()*+,;=", "/%F0%9F%8E%AC", "/?x", "?a=%41&b=%2f?", "/x?a/../b", "/.a/..b",
            "/%00", "/%0D%0AX:%20y", "/%ff%fe", "/a.mp4?sig=a%2Bb%3D&x", "/...",
        ] + [500, 8000, 20_000].map { "/" + String(repeating: "long%2F", count: $0 / 7) }

    mutating func drawSpelling(_ random: inout SplitMix) {
        // The longest spellings are rarely chosen, because each of them causes a request to the origin.
        let index = random.below(Self.spellings.count - (random.chance(20) ? 0 : 2))
        (path, routeRefusals) = (origin + "/spelt-\(index)" + Self.spellings[index], [404])
    }

    /// Chooses a random body that must reach the origin completely, and a path that contains its checksum.
    mutating func drawPassedBody(_ random: inout SplitMix) {
        let count = random.pick([0, 1, 100, 5000, random.chance(20) ? 200_000 : 20_000])
        var byte = random.next()
        body = (0..<count).map { _ in
            byte = byte &* 6_364_136_223_846_793_005 &+ 1
            return UInt8(truncatingIfNeeded: byte >> 56)
        }
        (path, media, isHealth, isAbsolute) = ("/body-" + Self.checksum(body), nil, false, false)
        routeRefusals = [404]
        if version != "HTTP/1.0", random.chance(2) {
            fields.append(("Transfer-Encoding", "chunked"))
            body = Self.chunked(body, &random)
        } else {
            fields.append(("Content-Length", "\(count)"))
        }
        if count > 0 { expectContinue(&random) }
    }

    /// Returns the FNV-1a hash and the length of the bytes.
    static func checksum(_ bytes: [UInt8]) -> String {
        let hash = bytes.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        return String(hash, radix: 16) + "-\(bytes.count)"
    }

    /// Returns a description of what is wrong with a request that the origin received; `nil` if the request is correct.
    static func problem(of exchange: OriginExchange, _ target: AdversarialTarget) -> String? {
        let full = exchange.path + (exchange.query.isEmpty ? "" : "?" + exchange.query)
        if full.hasPrefix("/spelt-") {
            let rest = full.dropFirst("/spelt-".count)
            let index = Int(rest.prefix { $0.isNumber }) ?? -1
            guard spellings.indices.contains(index),
                rest.dropFirst("\(index)".count) == spellings[index]
            else { return "the origin received \(full.prefix(300).debugDescription)" }
        }
        if full.hasPrefix("/body-"), full != "/body-" + checksum(exchange.requestBody) {
            return "the origin received \(checksum(exchange.requestBody)) as the body for \(full)"
        }
        if full.contains("smuggled") || full.contains("/.spool") || full.contains("s3cret") {
            return "the origin received \(full)"
        }
        for field in exchange.headerFields {
            let name = field.name.canonicalName
            if field.value.contains("s3cret") || ["proxy-authorization", "keep-alive", "te"].contains(name)
                || !target.isReverse && ["cookie", "origin", "referer", "forwarded"].contains(name)
            {
                return "the origin received \(field.name): \(field.value.prefix(100))"
            }
        }
        return nil
    }
}

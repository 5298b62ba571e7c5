import HTTPRanges
import HTTPTypes
import Testing

@Suite struct ContentDigestsTests {
    // The SHA-256 of “{"hello": "world"}” with a line feed, from RFC 9530.
    private static let hash = "RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg="
    private static let example = "Q2hlY2sgSW50ZWdyaXR5IQ=="  // The example in RFC 1864.

    private func digests(_ fields: [(String, String)]) throws -> ContentDigests {
        var all = HTTPFields()
        for (name, value) in fields { all.append(HTTPField(name: try #require(HTTPField.Name(name)), value: value)) }
        return ContentDigests(fields: all)
    }

    @Test(
        "SHA-256 hashes are read from Repr-Digest and Digest",
        arguments: [
            ("Repr-Digest", "sha-256=:\(hash):"), ("Repr-Digest", "md5=:\(example):, sha-256=:\(hash):;q=1"),
            ("Digest", "SHA-256=\(hash)"), ("digest", "unixsum=30637, sha-256=\(hash)"),
        ])
    func sha256(name: String, value: String) throws {
        let claimed = try digests([(name, value)]).claimed
        #expect(claimed[.sha256]?.count == 32 && claimed[.sha256]?.first == 0x44 && claimed[.sha256]?.last == 0x38)
    }

    @Test("MD5 hashes are read from Content-MD5 and from an entity tag")
    func md5() throws {
        let both = try digests([("Content-MD5", Self.example), ("ETag", "\"900150983cd24fb0d6963f7d28e17f72\"")])
        #expect(both.claimed[.md5] == Array("Check Integrity!".utf8))
        #expect(both.entityTag?.prefix(3) == [0x90, 0x01, 0x50] && both.entityTag?.count == 16)
    }

    @Test(
        "Malformed and unsupported digests are ignored",
        arguments: [
            ("Repr-Digest", "sha-256=\(hash)"), ("Repr-Digest", "sha-256=:AAAA:"), ("Repr-Digest", "sha-256"),
            ("Digest", "sha-256=***"), ("Content-MD5", "="), ("Content-MD5", ""), ("Digest", "=,=,:"),
            ("Content-Digest", "sha-256=:\(hash):"), ("ETag", "W/\"900150983cd24fb0d6963f7d28e17f72\""),
            ("ETag", "\"900150983cd24fb0d6963f7d28e17f7g\""), ("ETag", "\"900150983cd24fb0d6963f7d28e17f72-4\""),
            ("Repr-Digest", "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP=lF5HF9bvEF8FabDg=:"),
        ])
    func none(name: String, value: String) throws {
        let digests = try digests([(name, value)])
        #expect(digests.claimed.isEmpty && digests.entityTag == nil)
    }
}

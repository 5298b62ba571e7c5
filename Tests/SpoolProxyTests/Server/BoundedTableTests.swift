import HTTPTypes
import Spool
import Testing

@testable import SpoolProxy
@testable import SpoolStreams

/// The limits on tables of URLs and names that clients and origins send.
@Suite struct BoundedTableTests {
    @Test(arguments: [(100, 1 << 20), (1 << 20, 10_000)])
    func `A table respects its limits on entries and bytes, and contains the latest entries`(
        count: Int, bytes: Int
    ) {
        var table = BoundedTable<Int, Int>(count: count, bytes: bytes)
        for key in 0..<1000 { table.record(key, for: key, bytes: 100) }
        let known = (0..<1000).filter { table[$0] == $0 }
        #expect(known.count <= 100)
        #expect(known.count >= 50)
        #expect(known.last == 999)
        table.record(1, for: 1000, bytes: 40_000)
        #expect(table[1000] == nil)
    }

    @Test func `E148: a table respects its size limit while the values of known keys grow`() {
        var table = BoundedTable<Int, Int>(count: 100, bytes: 10_000)
        for bytes in stride(from: 10, through: 1000, by: 10) {
            for key in 0..<50 { table.record(bytes, for: key, bytes: bytes) }
        }
        #expect((0..<50).filter { table[$0] != nil }.count <= 10)
        // Only the last size of each key counts, not the sum of its sizes.
        for _ in 0..<50 { table.record(1, for: 100, bytes: 1000) }
        #expect((46..<50).allSatisfy { table[$0] == 1000 })
        table.record(2, for: 100, bytes: 40_000)
        #expect(table[100] == nil)
    }

    @Test("E130: the tables of stream data do not store URLs that are too long to be requested")
    func longAddresses() throws {
        let name = String(repeating: "a", count: 1_500_000)
        let found = try OriginURL("http://origin.example/list.m3u8")
        let long = try OriginURL("http://origin.example/\(name)")
        let (knowledge, key) = (StreamKnowledge(), CacheKey("list"))
        let live =
            "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"\(name)\"\n#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"b\"\n"
        knowledge.record(
            try HLSPlaylist(parsing: Array(live.utf8), at: found), requested: found, [:], found: found, key: key,
            tag: "1")
        #expect(knowledge.responseHold(for: long) == nil)
        #expect(knowledge.responseHold(for: try OriginURL("http://origin.example/b")) == .seconds(12))
        let master =
            "#EXTM3U\n#EXT-X-DEFINE:NAME=\"a\",VALUE=\"b\"\n#EXT-X-STREAM-INF:BANDWIDTH=1\n\(name)\n#EXT-X-STREAM-INF:BANDWIDTH=2\nb\n"
        knowledge.record(
            try HLSPlaylist(parsing: Array(master.utf8), at: found), requested: found, [:], found: found, key: key,
            tag: "2")
        #expect(knowledge.variables(for: long, [:]).values.isEmpty)
        #expect(knowledge.variables(for: try OriginURL("http://origin.example/b"), [:]).values == ["a": "b"])
        knowledge.record(.hls, ofVersion: name)
        #expect(knowledge.kind(ofVersion: name) == nil)
        knowledge.record(nil, ofVersion: "b")
        #expect(knowledge.kind(ofVersion: "b") == .some(nil))
    }

    @Test(
        "Key URLs from the last playlist are recognized in any percent-encoding, however many other keys precede them")
    func keys() throws {
        let knowledge = StreamKnowledge(keyLimit: 2000)
        let other = try OriginURL("https://keys.example/other")
        #expect(!knowledge.isKey(other))
        knowledge.record(keys: [other])
        #expect(knowledge.isKey(other))
        let many = try (0..<1000).map { try OriginURL("https://keys.example/\($0)") }
        knowledge.record(keys: many)
        #expect(many.allSatisfy(knowledge.isKey))
        knowledge.record(keys: [try OriginURL("https://keys.example/a%2Db|c")])
        #expect(knowledge.isKey(try OriginURL("https://keys.example/a%2Db%7Cc")))
    }
}

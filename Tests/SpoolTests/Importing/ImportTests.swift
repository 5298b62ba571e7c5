import Crypto
import Foundation
import HTTPTypes
import SpoolStorage
import SpoolTesting
import Testing

@testable import Spool

@Suite("Imported files", .timeLimit(.minutes(2)))
struct ImportTests {
    private static let film = PatternBytes(seed: 1, length: 1_000_000)
    private static let bytes = Data(film.bytes(0..<1_000_000))

    private func stage(
        _ fields: HTTPFields = [:], etag: String? = "\"v1\"", rules: OriginRule...,
        configure: (inout MediaCache.Configuration) -> Void = { _ in }
    ) throws -> MemoryStage {
        var resource = OriginResource(.pattern(Self.film), etag: etag, rules: rules)
        resource.headerFields = fields
        return try MemoryStage(["/a": resource], configure: configure)
    }

    private func file(_ stage: MemoryStage, _ bytes: Data = bytes) throws -> URL {
        let file = URL(fileURLWithPath: stage.file("film"))
        try bytes.write(to: file)
        return file
    }

    private static func digest(
        _ name: String, _ value: some Sequence<UInt8>, _ prefix: String, _ suffix: String
    )
        throws -> HTTPFields
    {
        [try #require(HTTPField.Name(name)): prefix + Data(value).base64EncodedString() + suffix]
    }

    @Test("An imported file whose length matches the origin's is complete, and plays while the origin is unreachable")
    func whole() async throws {
        let stage = try stage()
        let file = try file(stage)
        try await stage.session { cache in
            let source = MediaSource(url: stage.url())
            #expect(try await cache.importFile(at: file, as: source) == .length)
            let stored = try await cache.media(for: source).storedResource()
            #expect(stored?.isComplete == true && stored?.validator == "\"v1\"" && stored?.contentType == "audio/mpeg")
            // A second import has no effect.
            #expect(try await cache.importFile(at: file, as: source) == .length)
        }
        #expect(stage.origin.log.bytesSent() == 0)
        try FileManager.default.removeItem(at: file)
        try await stage.checkComplete(Self.film)
    }

    @Test("A hash in the header fields verifies or rejects a file; a hash in the ETag verifies it or is ignored")
    func hashes() async throws {
        let sha256 = Array(SHA256.hash(data: Self.bytes))
        let md5 = Array(Insecure.MD5.hash(data: Self.bytes))
        for fields in [
            try Self.digest("Repr-Digest", sha256, "sha-256=:", ":"), try Self.digest("Digest", sha256, "SHA-256=", ""),
            try Self.digest("Content-MD5", md5, "", ""),
        ] {
            let stage = try stage(fields)
            let good = try file(stage)
            try await stage.session { cache in
                let source = MediaSource(url: stage.url())
                var bad = Self.bytes
                bad[999_999] ^= 1
                try bad.write(to: good)
                let error = await #expect(throws: CacheError.self) { try await cache.importFile(at: good, as: source) }
                #expect(error?.code == .invalidArgument && error?.message.contains("hash") == true)
                #expect(try await cache.media(for: source).storedResource() == nil)
                try Self.bytes.write(to: good)
                #expect(try await cache.importFile(at: good, as: source) == .hash)
            }
        }
        let hexadecimal = md5.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        for (etag, proof) in [(hexadecimal, ImportVerification.hash), (String(hexadecimal.reversed()), .length)] {
            let stage = try stage(etag: "\"\(etag)\"")
            let file = try file(stage)
            try await stage.session { cache in
                let found = try await cache.importFile(at: file, as: MediaSource(url: stage.url()))
                #expect(found == proof)
            }
        }
    }

    @Test("A file is rejected if its length differs or the origin is unreachable, unless verification is disabled")
    func length() async throws {
        let stage = try stage()
        let file = try file(stage, Self.bytes.dropLast())
        try await stage.session { cache in
            let source = MediaSource(url: stage.url())
            let error = await #expect(throws: CacheError.self) { try await cache.importFile(at: file, as: source) }
            #expect(error?.code == .invalidArgument && error?.message.contains("999,999") == true, "\(error as Any)")
            try Self.bytes.write(to: file)
            stage.origin.setReachable(false)
            let gone = await #expect(throws: CacheError.self) { try await cache.importFile(at: file, as: source) }
            #expect(gone?.code == .originUnavailable)
            #expect(try await cache.importFile(at: file, as: source, verify: false) == .none)
        }
        try await stage.checkComplete(Self.film)
    }

    @Test("If the origin rejects HEAD during an import, the first byte is requested")
    func noHead() async throws {
        let stage = try stage(rules: .request(0, .status(405)))
        let file = try file(stage)
        try await stage.session { cache in
            let proof = try await cache.importFile(at: file, as: MediaSource(url: stage.url()))
            #expect(proof == .length)
        }
    }

    @Test("An import completes a partly stored resource, and replaces a different version only on request")
    func stored() async throws {
        let stage = try stage()
        let file = try file(stage)
        try await stage.session { cache in
            let source = MediaSource(url: stage.url())
            try await cache.media(for: source).check(.bytes(300_000..<500_000), Self.film)
            await cache.waitUntilIdle()
            let sent = stage.origin.log.bytesSent()
            try await cache.importFile(at: file, as: source)
            #expect(stage.origin.log.bytesSent() == sent)
            try await cache.pin(cache.key(for: source))

            let other = PatternBytes(seed: 2, length: 1_000_000)
            try Data(other.bytes(0..<1_000_000)).write(to: file)
            for verify in [true, false] {
                let error = await #expect(throws: CacheError.self) {
                    try await cache.importFile(at: file, as: source, verify: verify)
                }
                #expect(error?.code == .invalidArgument && error?.message.contains("differ") == true)
            }
            try await cache.media(for: source).check(.all, Self.film)
            try await cache.importFile(at: file, as: source, verify: false, replaceExisting: true)
            await cache.waitUntilIdle()
            try await cache.media(for: source).check(.all, other)
            #expect(try await cache.media(for: source).storedResource()?.isPinned == true)
        }
    }

    @Test(
        "If a file becomes shorter during its import, no bytes are stored, and the resource's download set remains")
    func becomesShorter() async throws {
        let stage = try stage()
        let path = stage.file("growing")
        try Data().write(to: URL(fileURLWithPath: path))
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try handle.truncate(atOffset: 48 << 20)
        try await stage.session { cache in
            let source = MediaSource(url: stage.url())
            let media = cache.media(for: source)
            try await media.check(.all, Self.film)
            try await cache.downloads.add(source).finished()
            let shortened = Task {
                for await state in media.states where state.storedByteCount > 1_000_000 {
                    return try handle.truncate(atOffset: 1000)
                }
            }
            let error = await #expect(throws: CacheError.self) {
                try await cache.importFile(
                    at: URL(fileURLWithPath: path), as: source, verify: false, replaceExisting: true)
            }
            try await shortened.value
            #expect(error?.code == .storage && error?.message.contains("truncated") == true)
            await cache.waitUntilIdle()
            let stored = try await cache.media(for: source).storedResource()
            #expect(stored?.storedByteCount ?? 0 == 0)
            #expect(try await cache.downloads.sets().count == 1)
        }
    }

    @Test("An import without free space or without a file fails with an error and does not store any bytes")
    func room() async throws {
        let stage = try stage { $0.capacity = .bytes(900_000) }
        let file = try file(stage)
        try await stage.session { cache in
            let source = MediaSource(url: stage.url())
            let full = await #expect(throws: CacheError.self) { try await cache.importFile(at: file, as: source) }
            #expect(full?.code == .capacityExceeded)
            for path in [stage.file("none"), stage.directory] {
                let missing = await #expect(throws: CacheError.self) {
                    try await cache.importFile(at: URL(fileURLWithPath: path), as: source)
                }
                #expect(missing?.code == .storage)
            }
            #expect(cache.storedByteCount == 0)
            let resources = try await cache.storedResources()
            #expect(resources.isEmpty)
        }
    }
}

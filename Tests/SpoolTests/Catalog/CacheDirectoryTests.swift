import ByteRanges
import Foundation
import Spool
import SpoolTesting
import Testing

@Suite("CacheDirectory", .timeLimit(.minutes(1)))
struct CacheDirectoryTests {
    let scratch: ScratchDirectory
    let pattern = PatternBytes(seed: 3, length: 1 << 20)
    let key = CatalogFixture.key("https://example.org/a")
    let now = Date(timeIntervalSince1970: 1_700_000_000)

    init() throws { scratch = try ScratchDirectory() }

    private var path: String { scratch.file("cache") }

    private func begin(_ directory: CacheDirectory, key: String? = nil) throws -> GenerationRecord {
        let (record, replaced) = try directory.catalog.beginGeneration(
            key: key ?? self.key, url: "https://example.org/a", version: "v", length: nil, contentType: nil, at: now)
        try directory.removeMedia(replaced)
        return try #require(record.generation)
    }

    private func current(_ directory: CacheDirectory) throws -> GenerationRecord {
        try #require(try directory.catalog.resource(key: key)?.generation)
    }

    private func land(_ range: Range<Int64>, in media: MediaFile) throws {
        try pattern.bytes(range).withUnsafeBytes { try media.land($0, at: range.lowerBound) }
    }

    private func read(_ range: Range<Int64>, from media: MediaFile) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0xEE, count: range.count)
        try bytes.withUnsafeMutableBytes { try media.read(range, into: $0) }
        return bytes
    }

    @Test("What was recorded is there after a clean end; folders and files are their owner's only")
    func cleanEnd() throws {
        var directory = try CacheDirectory(opening: path)
        #expect(directory.recovery == CacheDirectory.Recovery())
        let generation = try begin(directory)
        let media = try directory.openMedia(generation, key: key)
        try land(0..<200_000, in: media)
        try directory.catalog.record([(generation.id, media.takeSeals(partial: true))])
        try directory.close()

        directory = try CacheDirectory(opening: path)
        #expect(directory.recovery == CacheDirectory.Recovery())
        let reopened = try directory.openMedia(current(directory), key: key)
        #expect(reopened.landed == [0..<200_000])
        #expect(try read(0..<200_000, from: reopened) == pattern.bytes(0..<200_000))

        let tag = try String(contentsOfFile: path + "/CACHEDIR.TAG", encoding: .utf8)
        #expect(tag.hasPrefix("Signature: 8a477f597d28d172789f06886806bc55\n"))
        for name in FileManager.default.enumerator(atPath: path)?.allObjects as? [String] ?? [] {
            let attributes = try FileManager.default.attributesOfItem(atPath: path + "/" + name)
            let isFolder = attributes[.type] as? FileAttributeType == .typeDirectory
            #expect(attributes[.posixPermissions] as? Int == (isFolder ? 0o700 : 0o600), "\(name)")
        }
    }

    @Test("C33: after an unclean end nothing unsealed is claimed, orphans go, and unclaimed bytes are given back")
    func uncleanEnd() throws {
        var directory: CacheDirectory? = try CacheDirectory(opening: path)
        let kept = try begin(try #require(directory))
        let media = try #require(try directory?.openMedia(kept, key: key))
        try land(0..<3 * 65536, in: media)
        try directory?.catalog.record([(kept.id, media.takeSeals(partial: true).filter { $0.index != 1 })])
        try land(3 * 65536..<300_000, in: media)
        // A file whose generation never got into the catalog, and something that is not ours.
        let orphan = try #require(directory?.mediaPath(GenerationIdentifier()))
        try FileManager.default.createDirectory(
            atPath: (orphan as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
        for file in [orphan, path + "/media/README", path + "/media/x.media"] {
            try Data("x".utf8).write(to: URL(fileURLWithPath: file))
        }
        directory = nil  // Let go of without closing, as a kill does.

        let next = try CacheDirectory(opening: path)
        #expect(next.recovery.wasUnclean && next.recovery.orphansRemoved == 1)
        #expect(!FileManager.default.fileExists(atPath: orphan))
        #expect(FileManager.default.fileExists(atPath: path + "/media/README"))
        let reopened = try next.openMedia(current(next), key: key)
        #expect(reopened.landed == [0..<65536, 131072..<196_608])
        #expect(try read(131072..<196_608, from: reopened) == pattern.bytes(131072..<196_608))
        let file = try Data(contentsOf: URL(fileURLWithPath: next.mediaPath(kept.identifier)))
        #expect(file.count == 196_608 && file[65536..<131072].allSatisfy { $0 == 0 })
        try next.close()
        let last = try CacheDirectory(opening: path)
        #expect(!last.recovery.wasUnclean)
    }

    @Test("C33: a file that is tidied only sessions after the unclean end is tidied all the same")
    func lateTidying() throws {
        var directory: CacheDirectory? = try CacheDirectory(opening: path)
        let kept = try begin(try #require(directory))
        let media = try #require(try directory?.openMedia(kept, key: key))
        try land(0..<2 * 65536, in: media)
        try directory?.catalog.record([(kept.id, media.takeSeals(partial: true).filter { $0.index == 0 })])
        directory = nil
        try CacheDirectory(opening: path).close()
        let later = try CacheDirectory(opening: path)
        _ = try later.openMedia(current(later), key: key)
        #expect(try SystemFileSystem().openFile(later.mediaPath(kept.identifier), .read).size() == 65536)
    }

    @Test("C34: a media file that is gone or too short is holes, and the catalog is told")
    func missingFile() throws {
        let directory = try CacheDirectory(opening: path)
        let generation = try begin(directory)
        let media = try directory.openMedia(generation, key: key)
        try land(0..<200_000, in: media)
        try directory.catalog.record([(generation.id, media.takeSeals(partial: true))])
        try SystemFileSystem().openFile(directory.mediaPath(generation.identifier), .readWrite)
            .punchHole(70_000..<Int64.max)
        let short = try directory.openMedia(current(directory), key: key)
        #expect(short.landed == [0..<65536])
        #expect(try directory.catalog.storedBytes() == 65536)
        try directory.removeMedia([generation.identifier])
        // Who has it open keeps its bytes; who opens it anew finds holes.
        #expect(try read(0..<65536, from: short) == pattern.bytes(0..<65536))
        let gone = try directory.openMedia(current(directory), key: key)
        #expect(gone.landed.isEmpty)
        #expect(try directory.catalog.storedBytes() == 0)
    }

    @Test("C34, C39: a media file swapped with another resource's is bad, block for block")
    func swappedFiles() throws {
        let directory = try CacheDirectory(opening: path)
        let keys = [key, CatalogFixture.key("https://example.org/b")]
        let generations = try keys.map { try begin(directory, key: $0) }
        for (key, generation) in zip(keys, generations) {
            let media = try directory.openMedia(generation, key: key)
            let bytes = PatternBytes(seed: UInt64(generation.id), length: 100_000).data
            try bytes.withUnsafeBytes { try media.land($0, at: 0) }
            try directory.catalog.record([(generation.id, media.takeSeals(partial: true))])
        }
        let paths = generations.map { directory.mediaPath($0.identifier) }
        let files = SystemFileSystem()
        try files.rename(paths[0], to: paths[0] + ".tmp")
        try files.rename(paths[1], to: paths[0])
        try files.rename(paths[0] + ".tmp", to: paths[1])
        for key in keys {
            let generation = try #require(try directory.catalog.resource(key: key)?.generation)
            let media = try directory.openMedia(generation, key: key)
            #expect(throws: BadBlocks(indices: [0, 1], range: 0..<100_000)) { try read(0..<100_000, from: media) }
        }
    }

    @Test("C36: the second to open a directory gets an error that names the first, or looks without writing")
    func inUse() throws {
        var first: CacheDirectory? = try CacheDirectory(opening: path)
        let generation = try begin(try #require(first))
        let media = try #require(try first?.openMedia(generation, key: key))
        try land(0..<100, in: media)
        try first?.catalog.record([(generation.id, media.takeSeals(partial: true))])
        let error = #expect(throws: CacheError.self) { try CacheDirectory(opening: path) }
        let process = ProcessInfo.processInfo
        #expect(error?.code == .directoryInUse)
        #expect(error?.message.contains("\(process.processIdentifier)") == true)
        #expect(error?.message.contains(process.processName) == true)
        #expect(error?.message.contains(path) == true)

        let inspector = try CacheDirectory(inspecting: path)
        let seen = try inspector.openMedia(current(inspector), key: key)
        #expect(try read(0..<100, from: seen) == pattern.bytes(0..<100))
        #expect(throws: CacheError.self) { try land(100..<200, in: seen) }
        try first?.removeMedia([generation.identifier])
        let missing = try inspector.openMedia(current(inspector), key: key)
        #expect(missing.landed.isEmpty)
        #expect(throws: CacheError.self) { try land(0..<200, in: missing) }

        first = nil
        #expect(try CacheDirectory(opening: path).recovery.wasUnclean)
        let none = #expect(throws: CacheError.self) { try CacheDirectory(inspecting: scratch.file("none")) }
        #expect(none?.code == .notStored)
        #expect(!FileManager.default.fileExists(atPath: scratch.file("none")))
    }

    @Test("C40: with a damaged catalog the cache goes on empty, and says where the old one is")
    func damagedCatalog() throws {
        let first = try CacheDirectory(opening: path)
        let generation = try begin(first)
        _ = try first.openMedia(generation, key: key)
        try first.close()
        try Data("This is no database, it never was one; and it is long enough to be taken for a header.".utf8)
            .write(to: URL(fileURLWithPath: path + "/catalog.sqlite"))
        let next = try CacheDirectory(opening: path, now: now)
        #expect(next.recovery.damagedCatalog == path + "/catalog-damaged-1700000000000.sqlite")
        #expect(next.recovery.orphansRemoved == 1)
        #expect(try next.catalog.resources().isEmpty)
        _ = try begin(next)
    }

    @Test(
        "C35: whichever call fails, opening and filling fail with path and cause, and the cache can be opened again",
        arguments: [POSIXErrorCode.ENOSPC, .EIO, .EROFS, .EMFILE])
    func anyCallFails(_ code: POSIXErrorCode) throws {
        // How many calls there are when nothing fails.
        let healthy = FaultyFileSystem()
        try fill(scratch.file("healthy"), healthy)
        let calls = healthy.callCount
        #expect(calls > 10)
        for number in 0..<calls {
            let files = FaultyFileSystem()
            files.fail(with: .error(code), after: number, times: 1)
            let path = scratch.file("cache-\(number)")
            do {
                try fill(path, files)
            } catch {
                let error = try #require(error as? CacheError, "call \(number): \(error)")
                #expect(error.code == .storage && error.posixCode == code)
                #expect(error.message.contains(path) && error.message.hasSuffix("."))
            }
            // Whatever was claimed is right.
            let directory = try CacheDirectory(opening: path)
            if let generation = try directory.catalog.resource(key: key)?.generation {
                let media = try directory.openMedia(generation, key: key)
                for range in media.landed { #expect(try read(range, from: media) == pattern.bytes(range)) }
            }
        }
    }

    private func fill(_ path: String, _ files: FaultyFileSystem) throws {
        let directory = try CacheDirectory(opening: path, fileSystem: files, now: now)
        let generation = try begin(directory)
        let media = try directory.openMedia(generation, key: key)
        try land(0..<100_000, in: media)
        try directory.catalog.record([(generation.id, media.takeSeals(partial: true))])
        #expect(try read(0..<100_000, from: media) == pattern.bytes(0..<100_000))
        let dropped = media.drop(0..<65536)
        try directory.catalog.dropBlocks(generation.id, indices: dropped.indices)
        if let failure = dropped.failure { throw failure }
        try directory.close()
    }
}

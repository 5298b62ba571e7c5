import Crypto
import Foundation
import Spool

extension Benchmark {
    private static let length: Int64 = 256 << 20

    /// The cost of encryption, compared with the cost of only decrypting the same blocks and with an unencrypted cache.
    static let encryption = Benchmark(
        name: "encryption",
        summary: "256 MiB in chunks of 1 MiB: reading from and fetching into an encrypted cache, in GB/s"
    ) {
        var table = Table("what", "Spool, GB/s", "peer, GB/s", "ratio")
        var goals: [Goal] = []
        func add(_ what: String, _ peer: String, _ pair: Pair, goal: Double) {
            table.add(
                "\(what), vs. \(peer)", decimal(median(pair.spool)), decimal(median(pair.peer)), decimal(pair.ratio))
            goals.append(
                Goal(
                    name: "\(what), encrypted", spool: "\(decimal(median(pair.spool))) GB/s",
                    peer: "\(decimal(median(pair.peer))) GB/s", ratio: decimal(pair.ratio), goal: "≥ \(goal)",
                    isMet: pair.ratio >= goal))
        }
        add("hit", "pread and AES-GCM decryption of the same blocks", try await hits(), goal: 0.7)
        add("miss", "an unencrypted cache", try await misses(), goal: 0.8)
        let plain = try await hitsBesidePlain()
        table.add(
            "hit, vs. an unencrypted cache", decimal(median(plain.spool)), decimal(median(plain.peer)),
            decimal(plain.ratio)
        )
        return Report(tables: [table], goals: goals)
    }

    private static func configuration(isEncrypted: Bool) -> MediaCache.Configuration {
        var configuration = MediaCache.Configuration.unlimited
        if isEncrypted { configuration.encryptionKey = EncryptionKey(bytes: Data(repeating: 7, count: 32)) }
        return configuration
    }

    private static func rate(_ body: () async throws -> Void) async throws -> Double {
        Double(length) / 1e9 / (try await seconds(body))
    }

    private static func readAll(_ media: MediaResource) async throws {
        var count: Int64 = 0
        for try await chunk in media.reader(chunkSize: 1 << 20) { count += Int64(chunk.data.count) }
        guard count == length else { throw BenchmarkError("\(count) bytes read instead of \(length)") }
    }

    private static func hits() async throws -> Pair {
        let folder = try TemporaryFolder("encrypted-hit")
        let stored = try await StoredMedia("encrypted-hit-cache", length: length, configuration(isEncrypted: true))
        let blocks = try EncryptedFile(folder.url.appending(path: "blocks"), length: length)
        let pair = try await Pair.alternating(rounds: 9) {
            try await rate { try await readAll(stored.media) }
        } peer: {
            try await rate { try blocks.readAll() }
        }
        await stored.cache.close()
        return pair
    }

    private static func hitsBesidePlain() async throws -> Pair {
        let encrypted = try await StoredMedia("encrypted-hit-cache", length: length, configuration(isEncrypted: true))
        let plain = try await StoredMedia("plain-hit-cache", length: length)
        let pair = try await Pair.alternating(rounds: 9) {
            try await rate { try await readAll(encrypted.media) }
        } peer: {
            try await rate { try await readAll(plain.media) }
        }
        await encrypted.cache.close()
        await plain.cache.close()
        return pair
    }

    private static func misses() async throws -> Pair {
        func miss(isEncrypted: Bool) async throws -> Double {
            let folder = try TemporaryFolder("encrypted-miss")
            let cache = MediaCache(
                directory: folder.url, upstream: MemoryOrigin(length: length),
                configuration: configuration(isEncrypted: isEncrypted))
            try await cache.open()
            let media = cache.media(for: try StoredMedia.url("media"))
            let rate = try await rate { try await readAll(media) }
            await cache.close()
            return rate
        }
        return try await Pair.alternating(rounds: 9) {
            try await miss(isEncrypted: true)
        } peer: {
            try await miss(isEncrypted: false)
        }
    }
}

/// A file of 64 KiB blocks, each encrypted separately. The cost of reading it is the minimum cost of decryption.
private struct EncryptedFile {
    private static let blockSize = 65_536

    private let file: URL
    private let key = SymmetricKey(size: .bits256)
    private var seals: [(nonce: AES.GCM.Nonce, tag: Data)] = []

    init(_ file: URL, length: Int64) throws {
        self.file = file
        try Data().write(to: file)
        let handle = try FileHandle(forWritingTo: file)
        let plain = Data((0..<Self.blockSize).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) })
        for index in 0..<length / Int64(Self.blockSize) {
            let box = try AES.GCM.seal(plain, using: key, authenticating: Self.header(index))
            try handle.write(contentsOf: box.ciphertext)
            seals.append((box.nonce, box.tag))
        }
        try handle.close()
    }

    private static func header(_ index: Int64) -> Data {
        withUnsafeBytes(of: (index.bigEndian, Int64(blockSize).bigEndian)) { Data($0) }
    }

    func readAll() throws {
        let handle = try FileHandle(forReadingFrom: file)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.blockSize, alignment: 4096)
        defer { buffer.deallocate() }
        for (index, seal) in seals.enumerated() {
            let count = pread(handle.fileDescriptor, buffer.baseAddress, buffer.count, off_t(index * buffer.count))
            guard count == buffer.count else { throw BenchmarkError("short read") }
            let box = try AES.GCM.SealedBox(
                nonce: seal.nonce, ciphertext: UnsafeRawBufferPointer(buffer), tag: seal.tag)
            blackHole(try AES.GCM.open(box, using: key, authenticating: Self.header(Int64(index))))
        }
        try handle.close()
    }
}

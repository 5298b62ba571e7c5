import ByteRanges
import Foundation
import Spool

/// Delivers a range that is already stored, while another process uses the cache directory.
struct FetchBeside {
    private static let chunkSize: Int64 = 1 << 20

    private let stored: StoredReader
    private let range: Range<Int64>
    private let executor = BlockingExecutor(threadLimit: 1, name: "spool.beside")

    /// Opens and verifies the stored range; `nil` unless all of it is stored.
    init?(_ range: MediaRange, of key: CacheKey, in directory: URL, encryptionKey: EncryptionKey?) async throws {
        let executor = executor
        let found = try await executor.run { () throws -> (StoredReader, Range<Int64>)? in
            guard let stored = try Self.reader(of: key, in: directory, encryptionKey),
                let length = stored.record.description?.length
            else { return nil }
            let start = range.start(in: length)
            let range = start..<max(start, min(length, range.end ?? length))
            guard !range.isEmpty, stored.record.landed.contains(range) else { return nil }
            var offset = range.lowerBound
            do {
                while offset < range.upperBound {
                    offset += Int64(try stored.read(offset..<min(range.upperBound, offset + Self.chunkSize)).count)
                }
            } catch is MissingBytes {
                return nil
            }
            return (stored, range)
        }
        guard let found else { return nil }
        (stored, self.range) = found
    }

    private static func reader(
        of key: CacheKey, in directory: URL, _ encryptionKey: EncryptionKey?
    ) throws -> StoredReader? {
        do {
            return try StoredReader(path: directory.path, key: key, encryptionKey: encryptionKey)
        } catch let error as CacheError where [.notStored, .storage].contains(error.code) {
            // The other process has not created its catalog yet, or is closing it.
            return nil
        }
    }

    /// Delivers the range.
    ///
    /// - Throws: ``CommandFailure`` if the target can't be written. `CacheError` with code `.resourceChanged` if the
    ///   other process has removed bytes since they were verified.
    func run(to target: OutputTarget) async throws -> Fetch.Outcome {
        let start = ContinuousClock.now
        do {
            var offset = range.lowerBound
            while offset < range.upperBound {
                try Task.checkCancellation()
                let next = offset..<min(range.upperBound, offset + Self.chunkSize)
                let data = try await executor.run { [stored] in try stored.read(next) }
                try await target.write(data)
                offset += Int64(data.count)
            }
            try await target.finish()
        } catch let missing as MissingBytes {
            target.discard()
            throw CacheError(
                .resourceChanged,
                "\(stored.record.url), \(missing.range.inWords): removed by another process while they were read")
        } catch {
            target.discard()
            throw error
        }
        let length = stored.record.description?.length
        return Fetch.Outcome(range: range, length: length, seconds: (ContinuousClock.now - start) / .seconds(1))
    }
}

import ByteRanges
public import Foundation
import HTTPRanges
import HTTPTypes
import SpoolStorage

extension MediaCache {
    /// Imports a file as a complete resource, as if its origin had sent it.
    ///
    /// Use this method for a file that the system has downloaded, or for a copy from another device. The file is read
    /// twice, is not changed, and is not needed afterwards. By default, the origin's response headers are requested.
    /// The length and any hash in these headers (`Repr-Digest`, `Digest`, `Content-MD5`) must match the file. The
    /// headers also supply the validator, the type and the freshness, so that later versions from the origin are
    /// recognized. Identical bytes that are already stored are not written again.
    ///
    /// If the task is cancelled, the bytes that were imported remain in the cache, and a later import resumes from
    /// there.
    ///
    /// - Parameters:
    ///   - file: A regular file.
    ///   - source: The source of the media in the file.
    ///   - verify: Whether the file is verified by a request to the origin. If `false`, no request is sent, and the
    ///     type of the file is unknown.
    ///   - replaceExisting: Whether different stored bytes are removed first.
    /// - Returns: How the file was verified.
    /// - Throws: `CacheError`, or `CancellationError`.
    ///   - `.invalidArgument` if the origin has a different file or does not send a length, or if different bytes are
    ///     stored and `replaceExisting` is `false`
    ///   - `.capacityExceeded` if there is too little space
    ///   - `.originUnavailable` if the origin can't be reached, and `.originErrorStatus` if it responds with an error
    ///   - `.incomplete` if some bytes could not be stored
    ///   - `.storage`, including if the file can't be read or changes during the import
    ///   - `.closed`
    @discardableResult
    public func importFile(
        at file: URL, as source: MediaSource, verify: Bool = true, replaceExisting: Bool = false
    ) async throws -> ImportVerification {
        try await FileImport(
            file: file, source: source, verify: verify, replaceExisting: replaceExisting, into: self
        )
        .run()
    }
}

/// The way in which an imported file was verified.
public struct ImportVerification: Sendable, Hashable {
    private enum Name { case nothing, length, hash }

    private let name: Name

    /// No request was sent to the origin.
    public static let none = ImportVerification(name: .nothing)
    /// The origin's file has the same length.
    public static let length = ImportVerification(name: .length)
    /// The origin's file has the same hash.
    public static let hash = ImportVerification(name: .hash)
}

/// The import of a file into a cache. The bytes of the file are stored in the same way as bytes from an origin.
private struct FileImport {
    private static let chunkSize: Int64 = 1 << 20

    private let path: String
    private let source: MediaSource
    private let verify: Bool
    private let replaceExisting: Bool
    private let cache: MediaCache

    init(file: URL, source: MediaSource, verify: Bool, replaceExisting: Bool, into cache: MediaCache) {
        path = file.resolvingSymlinksInPath().path
        self.source = source
        self.verify = verify
        self.replaceExisting = replaceExisting
        self.cache = cache
    }

    func run() async throws -> ImportVerification {
        let key = cache.key(for: source)
        if let cause = (try await cache.store).readOnlyReason { throw cause }
        let executor = cache.context.executor
        let file = try await executor.run(in: .background) { [path] in try ImportedFile(path) }
        let head = verify ? try await OriginHead(of: source, in: cache) : nil
        var proof = ImportVerification.none
        if let head { proof = try await check(file, by: head) }
        try await cache.downloads.work.checkReservedSpace(for: file.length, key, source.redactedURL, in: cache)
        let keepAsPrevious = try await replaceOthers(key, by: file)
        var source = source
        source.upstreamOverride = FileUpstream(file, head: head, executor: executor)
        let media = cache.media(for: source)
        do {
            try await store(media, keepAsPrevious)
            guard try await executor.run(in: .background, { try file.isUnchanged }) else {
                throw CacheError(
                    .storage, "“\(path)” changed during the import, so nothing was stored", key: key)
            }
        } catch let error as CacheError where error.code == .unsatisfiableRange && file.length == 0 {
            // An empty file does not have to be stored.
            return proof
        } catch {
            // Stored bytes count as bytes from the origin, so they are removed if the file may have changed.
            let isUnchanged = try? await executor.run(in: .background) { try file.isUnchanged }  // `nil` if unknown.
            if isUnchanged != true { try await media.remove() }
            throw error
        }
        let stored = try await media.storedResource()
        guard stored?.isComplete == true, stored?.length == file.length else {
            throw CacheError(
                .incomplete,
                "\(source.redactedURL): only \((stored?.storedByteCount ?? 0).counted("byte")) of “\(path)” could be stored",
                key: key)
        }
        return proof
    }

    /// Stores the whole file. The pins of the replaced resource are restored as soon as bytes are stored.
    private func store(_ media: MediaResource, _ keepAsPrevious: (() async throws -> Void)?) async throws {
        var keepAsPrevious = keepAsPrevious
        let reader = media.preloadReader(chunkSize: Int(Self.chunkSize), handsOutSlices: true)
        while try await reader.next() != nil {
            try await keepAsPrevious?()
            keepAsPrevious = nil
        }
        // A cancelled reader ends without an error.
        try Task.checkCancellation()
    }

    // MARK: - The origin's headers

    private func check(_ file: ImportedFile, by head: OriginHead) async throws -> ImportVerification {
        guard let length = head.length else {
            throw CacheError(
                .invalidArgument,
                "“\(path)” can't be compared with \(source.redactedURL), because the origin does not send a length; to "
                    + "import the file anyway, disable verification",
                key: cache.key(for: source))
        }
        guard length == file.length else {
            throw refusal("the file has \(file.length.counted("byte")), but the media has \(length.counted("byte"))")
        }
        let digests = ContentDigests(fields: head.fields)
        guard !digests.claimed.isEmpty || digests.entityTag != nil else { return .length }
        let hashes = try await cache.context.executor.run(in: .background) { try file.hashes() }
        for (algorithm, claimed) in digests.claimed where hashes.value(algorithm) != claimed {
            throw refusal("the file's hash differs from the origin's")
        }
        // A different or missing entity tag proves nothing, because an entity tag need not be a hash.
        return !digests.claimed.isEmpty || digests.entityTag == hashes.md5 ? .hash : .length
    }

    private func refusal(_ cause: String) -> CacheError {
        CacheError(
            .invalidArgument, "“\(path)” is not the media at \(source.redactedURL): \(cause)",
            key: cache.key(for: source))
    }

    // MARK: - Stored bytes

    /// Removes different stored bytes, if requested.
    ///
    /// - Returns: A function that restores the pins of the replaced resource; `nil` if nothing was removed.
    /// - Throws: `CacheError` with code `.invalidArgument` if bytes differ and should not be replaced.
    private func replaceOthers(_ key: CacheKey, by file: ImportedFile) async throws -> (() async throws -> Void)? {
        let media = cache.media(for: source)
        guard let stored = try await media.storedResource(), stored.storedByteCount > 0 else { return nil }
        guard try await differs(stored, from: file) else { return nil }
        guard replaceExisting else {
            throw CacheError(
                .invalidArgument,
                "\(source.redactedURL) is already stored\(stored.isComplete ? "" : " in part"), and differs from "
                    + "“\(path)”; remove the stored bytes first, or allow their replacement",
                key: key)
        }
        let store = try await cache.store
        let downloads = try await store.downloads.members().filter { $0.key == key.hash }
        try await media.remove()
        return {
            if !downloads.isEmpty {
                try await store.downloads.add(downloads)
            } else if stored.isPinned {
                try await cache.pin(key)
            }
        }
    }

    private func differs(_ stored: StoredResource, from file: ImportedFile) async throws -> Bool {
        if stored.length ?? file.length != file.length { return true }
        if stored.storedRanges.bounds?.upperBound ?? 0 > file.length { return true }
        guard let lease = try await cache.store.lease(stored.key) else { return false }
        defer { lease.end() }
        let generation = lease.generation
        let executor = cache.context.executor
        for range in stored.storedRanges {
            var offset = range.lowerBound
            while offset < range.upperBound {
                try Task.checkCancellation()
                let part = offset..<min(range.upperBound, offset + Self.chunkSize)
                let isSame = try await executor.run(in: .background) {
                    do {
                        return try generation.read(part) == file.read(part)
                    } catch is MissingBytes {
                        // The bytes have been damaged or evicted in the meantime, so they are read from the file.
                        return true
                    }
                }
                guard isSame else { return true }
                offset = part.upperBound
            }
        }
        return false
    }
}

extension FileHashes {
    fileprivate func value(_ algorithm: ContentDigests.Algorithm) -> [UInt8] {
        switch algorithm {
        case .sha512: sha512
        case .sha256: sha256
        case .md5: md5
        }
    }
}

/// A file to import, in the state in which it was opened. All operations block.
final class ImportedFile: Sendable {
    private let file: any StoredFile
    private let path: String
    /// The number of bytes.
    let length: Int64
    /// The time of the last write.
    private let modified: Date?

    /// Opens the file at a path.
    ///
    /// - Throws: `CacheError` with code `.storage` if the file can't be read, or is not a regular file.
    init(_ path: String) throws {
        self.path = path
        file = try SystemFileSystem().openFile(path, .read)
        length = try file.size()
        modified = Self.modificationDate(of: path)
    }

    /// Whether the file is unchanged since it was opened.
    var isUnchanged: Bool { get throws { try file.size() == length && Self.modificationDate(of: path) == modified } }

    func hashes() throws -> FileHashes { try FileHashes(of: file) }

    /// Returns the bytes of a range.
    ///
    /// - Throws: `CacheError` with code `.storage`, including if the file has become shorter.
    func read(_ range: Range<Int64>) throws -> Data {
        var data = Data(count: range.count)
        let count = try data.withUnsafeMutableBytes { try file.read(into: $0, at: range.lowerBound) }
        guard count == range.count else { throw CacheError(.storage, "“\(path)” was truncated during the import") }
        return data
    }

    private static func modificationDate(of path: String) -> Date? {
        // Without a date, only the length is compared.
        try? FileManager.default.attributesOfItem(atPath: path)[.modificationDate] as? Date
    }
}

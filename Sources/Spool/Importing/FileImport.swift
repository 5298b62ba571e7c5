import ByteRanges
import Foundation
import HTTPRanges
import HTTPTypes
import SpoolStorage

/// Brings a file into a cache by the way that an origin's bytes take.
struct FileImport {
    private static let chunkSize: Int64 = 1 << 20

    private let path: String
    private let source: MediaSource
    private let isChecked: Bool
    private let replacesOthers: Bool
    private let cache: MediaCache

    init(file: URL, source: MediaSource, isChecked: Bool, replacesOthers: Bool, into cache: MediaCache) {
        path = file.resolvingSymlinksInPath().path
        self.source = source
        self.isChecked = isChecked
        self.replacesOthers = replacesOthers
        self.cache = cache
    }

    func run() async throws -> ImportProof {
        let key = cache.key(for: source)
        if let cause = (try await cache.store).readOnlyReason { throw cause }
        let executor = cache.context.executor
        let file = try await executor.run(in: .background) { [path] in try ImportedFile(path) }
        let head = isChecked ? try await OriginHead(of: source, in: cache) : nil
        var proof = ImportProof.none
        if let head { proof = try await check(file, by: head) }
        try await cache.downloads.work.checkRoom(for: file.length, key, source.displayAddress, in: cache)
        let keepAsFormer = try await replaceOthers(key, by: file)
        var source = source
        source.standIn = FileUpstream(file, head: head, executor: executor)
        let media = cache.media(for: source)
        do {
            try await land(media, keepAsFormer)
            guard try await executor.run(in: .background, { try file.isUnchanged }) else {
                throw CacheError(.storage, "“\(path)” was changed while it was read; nothing of it is kept", key: key)
            }
        } catch let error as CacheError where error.code == .unsatisfiableRange && file.length == 0 {
            // Of nothing there is nothing to keep.
            return proof
        } catch {
            // What has landed goes by the origin's name; of a file that may be another by now it is not the origin's.
            let isUnchanged = try? await executor.run(in: .background) { try file.isUnchanged }  // Nil: nobody knows.
            if isUnchanged != true { try await media.remove() }
            throw error
        }
        let stored = try await media.storedResource()
        guard stored?.isComplete == true, stored?.length == file.length else {
            throw CacheError(
                .incomplete,
                "\(source.displayAddress): only \((stored?.storedByteCount ?? 0).counted("byte")) of “\(path)” could be kept",
                key: key)
        }
        return proof
    }

    /// Lands the whole file; it is kept as what it replaces was as soon as there is something to keep.
    private func land(_ media: MediaResource, _ keepAsFormer: (() async throws -> Void)?) async throws {
        var keepAsFormer = keepAsFormer
        let reader = media.preloadReader(chunkSize: Int(Self.chunkSize), handsOutSlices: true)
        while try await reader.next() != nil {
            try await keepAsFormer?()
            keepAsFormer = nil
        }
        // A reader that was cancelled ends without an error.
        try Task.checkCancellation()
    }

    // MARK: - What the origin says

    private func check(_ file: ImportedFile, by head: OriginHead) async throws -> ImportProof {
        guard head.length == file.length else {
            let length = head.length.map { "has \($0.counted("byte"))" } ?? "does not tell its length"
            throw refusal("it has \(file.length.counted("byte")), and the origin's \(length)")
        }
        let digests = ContentDigests(fields: head.fields)
        guard !digests.claimed.isEmpty || digests.entityTag != nil else { return .length }
        let hashes = try await cache.context.executor.run(in: .background) { try file.hashes() }
        for (algorithm, claimed) in digests.claimed where hashes.value(algorithm) != claimed {
            throw refusal("its hash is not that of the origin's")
        }
        // One that is another hash, or none, says nothing.
        return !digests.claimed.isEmpty || digests.entityTag == hashes.md5 ? .hash : .length
    }

    private func refusal(_ cause: String) -> CacheError {
        CacheError(
            .invalidArgument, "“\(path)” is not \(source.displayAddress): \(cause)", key: cache.key(for: source))
    }

    // MARK: - What is stored

    /// Removes what is stored and differs, where that is wanted.
    ///
    /// - Returns: What keeps the new bytes as the former ones were kept; nil where nothing was removed.
    /// - Throws: `CacheError` with code `.invalidArgument` where it is not.
    private func replaceOthers(_ key: CacheKey, by file: ImportedFile) async throws -> (() async throws -> Void)? {
        let media = cache.media(for: source)
        guard let stored = try await media.storedResource(), stored.storedByteCount > 0 else { return nil }
        guard try await differs(stored, from: file) else { return nil }
        guard replacesOthers else {
            throw CacheError(
                .invalidArgument,
                "what is stored of \(source.displayAddress)\(stored.isComplete ? ", all of it," : "") differs from “\(path)”",
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
                        // Damaged, or evicted meanwhile: brought from the file.
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

import Foundation
import Synchronization

/// A type that removes media files, and tracks the claims of files that can't be removed.
///
/// A claim ends only once, when the file with its bytes is removed. If a file can't be removed, its claim stays, and
/// the removal is retried when space is needed.
final class FileRemover: Sendable {
    private let directory: CacheDirectory
    private let ledger: Ledger
    private let reporter: StoreReporter
    private let unremoved = Mutex(UnremovedFiles())

    init(directory: CacheDirectory, ledger: Ledger, reporter: StoreReporter) {
        self.directory = directory
        self.ledger = ledger
        self.reporter = reporter
    }

    // MARK: - Versions

    /// Removes the files of resources that are no longer in the catalog. The method blocks.
    func finish(_ ended: GenerationTable.Ended) {
        for resource in ended.stored {
            ledger.correct(by: resource.correction.storedBytes)
            ledger.correctRows(by: resource.correction.rowBytes - resource.rowBytes)
            if let identifier = resource.generation {
                remove(identifier, claiming: resource.storedBytes)
                continue
            }
            if resource.storedBytes > 0 {
                // A damaged record does not contain the name of its file, so a sweep has to find the file. If that
                // can't be recorded, an unclean shutdown may still cause a sweep.
                try? directory.catalog.settings.setSweepPending(true)
            }
            ledger.releaseClaim(resource.storedBytes)
        }
        finish(ended.outcome)
    }

    /// Reports retired versions to their users, and disposes of versions without leases. The method blocks.
    func finish(_ outcome: GenerationTable.Outcome) {
        for (generation, users) in outcome.retired {
            for user in users { user.retired(generation) }
        }
        for generation in outcome.gone { dispose(of: generation) }
    }

    /// Removes the file of a version that has no lease and no record, and then returns its claims. The method blocks.
    func dispose(of generation: Generation) {
        if let disk = generation.disk {
            disk.file.close()
            remove(generation.identifier, claiming: disk.endCounting())
        }
        generation.endRowClaim()
        generation.memory.evictAll()
    }

    // MARK: - Files

    /// Removes a file that no record names, and then returns its claim. If the file can't be removed, the claim stays.
    private func remove(_ identifier: GenerationIdentifier, claiming claim: Int64) {
        let error = directory.removeMedia(identifier)
        if let error, hasFile(identifier) {
            unremoved.withLock { $0.add(identifier, claim) }
            reporter.warnOnce(
                "removal", error,
                "\(error.message); the space of files that can't be removed counts as used")
        } else {
            // If there was no file, the result does not show whether removals work, because removing a missing file
            // always succeeds.
            if let error {
                reporter.warn(error.message)
            } else if claim > 0 {
                unremoved.withLock { $0.recordRemoval() }
            }
            ledger.releaseClaim(claim)
        }
    }

    /// Returns whether there may be a file with the claimed bytes. A directory or a link with that name does not count.
    private func hasFile(_ identifier: GenerationIdentifier) -> Bool {
        do throws(CacheError) {
            return try directory.bytes.open(identifier.hex, isWritable: false) != nil
        } catch {
            return !error.isNotRegularFile
        }
    }

    /// Retries removing some of the files that could not be removed. The method blocks.
    ///
    /// - Returns: The number of bytes whose claims were returned.
    func retryRemovals() -> Int64 {
        var freed: Int64 = 0
        for (identifier, claim) in unremoved.withLock({ $0.takeForRetry() }) {
            if directory.removeMedia(identifier) == nil {
                unremoved.withLock { $0.recordRemoval(claim: claim) }
                ledger.releaseClaim(claim)
                freed += claim
            } else {
                unremoved.withLock { $0.putBack(identifier, claim) }
            }
        }
        return freed
    }

    /// Whether evicting more would only discard media without freeing space, because the most recent removals all
    /// failed.
    var isRemovalFailing: Bool { unremoved.withLock { $0.isRemovalFailing } }

    /// The number of bytes claimed by files that could not be removed.
    var unremovedByteCount: Int64 { unremoved.withLock { $0.byteCount } }

    /// Returns whether the file could not be removed.
    func isUnremoved(_ identifier: GenerationIdentifier) -> Bool { unremoved.withLock { $0.contains(identifier) } }

    // MARK: - Files of an earlier process

    /// Removes the remains of an unclean shutdown: an incomplete copy of the catalog, and files that no record names.
    /// The method blocks.
    ///
    /// - Parameter isLive: A function that returns whether the store uses a file with this name, recorded or not; `nil`
    ///   once the store is closed.
    func sweep(_ isLive: (GenerationIdentifier) -> Bool?) {
        do {
            guard try directory.catalog.settings.isSweepPending() else { return }
            try CatalogCopy.remove(from: directory.path, directory.fileSystem)
            let failed = directory.removalsFailed
            guard try removeOrphans(isLive) else { return }
            try directory.recordSwept(since: failed)
        } catch {
            // The sweep is still recorded as pending, and is retried the next time the cache is opened.
            reporter.warn("files left by a crash could not be removed: \(error)")
        }
    }

    /// - Returns: Whether all files were examined.
    private func removeOrphans(_ isLive: (GenerationIdentifier) -> Bool?) throws -> Bool {
        var isDone = true
        var failure: CacheError?
        try directory.forEachMediaFile { identifier in
            guard let isLive = isLive(identifier) else {
                isDone = false
                return false
            }
            // The order matters, because a version stays live until it is recorded.
            guard !isLive, try !directory.catalog.contains(identifier) else { return true }
            let count = allocatedBytes(of: identifier)
            guard let error = directory.removeMedia(identifier) else { return true }
            failure = error
            guard !isUnremoved(identifier) else { return true }
            // The account does not include the file yet, because it has no record.
            ledger.correct(by: count)
            unremoved.withLock { $0.add(identifier, count, isEvicted: false) }
            return true
        }
        if let failure { throw failure }
        return isDone
    }

    /// Returns the number of bytes that a file occupies on disk; 0 if it is unknown.
    private func allocatedBytes(of identifier: GenerationIdentifier) -> Int64 {
        // The size of a file that can't be opened is unknown.
        guard let file = try? directory.bytes.open(identifier.hex, isWritable: false) else { return 0 }
        var (count, offset): (Int64, Int64) = (0, 0)
        // If the next range can't be determined, only the ranges before it are counted.
        while let data = try? file.nextData(from: offset), data.upperBound > offset {
            count += data.upperBound - data.lowerBound
            offset = data.upperBound
        }
        return count
    }
}

/// Media files without a record that could not be removed. They keep their claims until they are removed.
///
/// This type does not perform I/O. ``FileRemover`` retries the removals when space is needed, a few at a time.
struct UnremovedFiles: Sendable {
    /// The number of consecutive failures after which no more media is evicted.
    static let failureLimit = 4
    /// The number of removals that an eviction retries.
    static let retryCount = 4

    /// The files, least recently tried first.
    private var files: [(identifier: GenerationIdentifier, claim: Int64)] = []
    private var failures = 0

    /// The total number of bytes that the files claim.
    private(set) var byteCount: Int64 = 0

    /// Whether evicting more would only discard media without freeing space, because the most recent removals all
    /// failed.
    var isRemovalFailing: Bool { failures >= Self.failureLimit }

    /// Adds a file that could not be removed.
    ///
    /// - Parameter isEvicted: Whether an eviction or removal failed. A file that an earlier process left does not
    ///   indicate that other removals fail. The default is `true`.
    mutating func add(_ identifier: GenerationIdentifier, _ claim: Int64, isEvicted: Bool = true) {
        if isEvicted { failures = min(failures + 1, Self.failureLimit) }
        files.append((identifier, claim))
        byteCount += claim
    }

    /// Takes the files whose removal is to be retried now. Each is put back with ``putBack(_:_:)`` or reported with
    /// ``recordRemoval(claim:)``.
    mutating func takeForRetry() -> [(identifier: GenerationIdentifier, claim: Int64)] {
        let taken = Array(files.prefix(Self.retryCount))
        files.removeFirst(taken.count)
        return taken
    }

    /// Puts back a file that still could not be removed.
    mutating func putBack(_ identifier: GenerationIdentifier, _ claim: Int64) { files.append((identifier, claim)) }

    /// Records the removal of a file, which shows that removals work again.
    ///
    /// - Parameter claim: The file's claim, if it was taken for a retry.
    mutating func recordRemoval(claim: Int64 = 0) {
        failures = 0
        byteCount -= claim
    }

    /// Returns whether the file is among those that could not be removed.
    func contains(_ identifier: GenerationIdentifier) -> Bool { files.contains { $0.identifier == identifier } }
}

extension CacheError {
    /// Whether the error means that a link, a directory, a device or a pipe has the file's name.
    var isNotRegularFile: Bool {
        posixCode.map { [.ELOOP, .EISDIR, .EINVAL, .ENXIO].contains($0) } ?? false
    }
}

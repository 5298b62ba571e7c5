package import ByteRanges
import Synchronization

/// An open version of a resource. Its bytes are on disk or, if the disk does not accept them, in memory.
///
/// A process has one object for each version. The store creates it, and users hold a ``Lease`` on it. Bytes in memory
/// have no checksums and no record, and are evicted as soon as no reader is near them. Methods that access bytes block,
/// except ``readWithoutBlocking(_:into:)``, and should run on the blocking executor. The queries hold locks only
/// briefly, and may be called on any thread.
package final class Generation: Sendable {
    struct State {
        var description: GenerationDescription
        var isDescriptionNew = false
        /// Whether bytes may be stored on disk.
        let mayStoreOnDisk: Bool
        /// The elapsed time at which the disk is used again after a failure; `nil` if it has not failed.
        var retryAt: Duration?
        /// The number of bytes that are claimed for the row; `nil` until there is something to record.
        var rowClaim: Int64?
        /// Whether the version was removed, so that its row can't be claimed anymore.
        var hasRowEnded = false
        /// The unused space at the ends of stored ranges, in bytes, that exceeds ``GenerationDescription/pageBytes``.
        var padding: Int64 = 0
        /// The reported reason why bytes are only in memory; `nil` if none was reported.
        var lossCause: CacheError?
    }

    /// The resource's key.
    package let key: CacheKey
    /// The version's random name.
    package let identifier: GenerationIdentifier
    /// The scheme, host and path, for messages.
    package let url: String
    /// The presentation that the resource is part of; `nil` if there is none.
    let presentation: CacheKey?
    /// The keys of the resources that this version is a variant of, if it was created in this process.
    let variantOf: [CacheKey]

    /// The bytes on disk; `nil` if the version is not stored on disk.
    let disk: MediaFile?
    let memory: GenerationMemory
    /// Whether ``GenerationUser/offerEvictable(_:within:of:)`` may return ranges again, because a reader or a transfer
    /// has moved since the last call.
    private let hasMoved = Atomic(true)
    /// Whether the bytes on disk are not read, because the file repeatedly could not be opened. The bytes are read
    /// again after the pause that ``pauseDiskStorage(_:)`` starts.
    private let skipsDisk = Atomic(false)
    /// The accounting of disk space.
    let ledger: Ledger
    let row: CatalogRow
    let state: Mutex<State>
    /// Whether the version is no longer in the cache, or the cache is closed. In both cases, no more bytes are stored.
    let isRetired = Atomic(false)
    /// Whether the first block is stored, or the version was stored before.
    let isProven: Atomic<Bool>
    weak let owner: (any GenerationOwner)?

    init(
        key: CacheKey, identifier: GenerationIdentifier, url: String, description: GenerationDescription,
        disk: MediaFile?, row: CatalogRow, isKept: Bool, isProven: Bool, ledger: Ledger, memoryLedger: Ledger,
        owner: any GenerationOwner, presentation: CacheKey? = nil, variantOf: [CacheKey] = [], rowClaim: Int64? = nil,
        padding: Int64 = 0
    ) {
        self.key = key
        self.presentation = presentation
        self.variantOf = variantOf
        self.identifier = identifier
        self.url = url
        self.disk = disk
        self.memory = GenerationMemory(length: description.length, ledger: memoryLedger)
        self.ledger = ledger
        self.row = row
        self.state = Mutex(
            State(
                description: description, mayStoreOnDisk: isKept, rowClaim: rowClaim,
                padding: GenerationDescription.countedPadding(padding)))
        self.isProven = Atomic(isProven)
        self.owner = owner
    }

    // MARK: - Queries

    /// The description of the version: its length, content type, identity and fields.
    package var description: GenerationDescription { state.withLock { $0.description } }

    /// Changes the description, which is then recorded in the background.
    ///
    /// - Returns: `false`, and changes nothing, if the new length contradicts stored bytes or the previous length. In
    ///   that case, the description is that of a different version.
    package func update(_ change: (inout GenerationDescription) -> Void) -> Bool {
        let (isPossible, isNew) = state.withLock { state -> (Bool, Bool) in
            var description = state.description
            change(&description)
            guard description != state.description else { return (true, false) }
            if description.length != state.description.length {
                guard state.description.length == nil, let length = description.length, length >= 0,
                    length >= memory.file.storedRanges.bounds?.upperBound ?? 0,
                    disk?.setLength(length) ?? true, memory.file.setLength(length)
                else { return (false, false) }
            }
            state.description = description
            state.isDescriptionNew = true
            if let previous = state.rowClaim {
                let claim = description.rowBytes(url: url) + state.padding
                state.rowClaim = claim
                ledger.correctRows(by: claim - previous)
            }
            return (true, true)
        }
        if isNew {
            owner?.recordChange(of: self)
            proveIfWhole()
        }
        return isPossible
    }

    /// The first reported reason why bytes were not stored on disk; `nil` if none was reported.
    package var lossCause: CacheError? { state.withLock { $0.lossCause } }

    /// Whether new bytes are stored on disk.
    package var isKept: Bool { storesOnDisk && !isRetired.load(ordering: .relaxed) }

    /// Whether every byte is stored in the cache.
    package var isStoredWhole: Bool { disk?.isWhole ?? false }

    /// Whether all bytes of a response are stored or, as far as is known, will be. The value is `false` if the last
    /// write failed, or if bytes are only in memory.
    package var isExpectedWhole: Bool { isKept && (isStoredWhole || !ledger.isWriteFailing && !memory.isInUse) }

    /// Whether new bytes may be stored on disk, and the disk has not failed within ``retryTime``.
    var storesOnDisk: Bool {
        let (mayStore, retryAt) = state.withLock { ($0.mayStoreOnDisk, $0.retryAt) }
        guard mayStore, let retryAt else { return mayStore }
        return owner.map { $0.elapsed >= retryAt } ?? false
    }

    /// Whether another process may change the file, in which case there are no slices of it.
    package var isShared: Bool { disk?.isShared ?? false }

    /// Whether slices can be used. This requires that the bytes in the file are unencrypted and that no other process
    /// removes them.
    package var handsOutSlices: Bool { disk.map { !$0.isShared && !$0.isEncrypted } ?? true }

    /// All bytes that can be read, on disk and in memory.
    package var storedRanges: ByteRangeSet {
        guard !isDiskSkipped, var storedRanges = disk?.storedRanges else { return memory.file.storedRanges }
        if memory.isInUse { storedRanges.formUnion(memory.file.storedRanges) }
        return storedRanges
    }

    /// Returns the run of stored bytes that starts at `offset`; `nil` if the byte at `offset` is not stored.
    package func storedPrefix(at offset: Int64) -> Range<Int64>? {
        if isDiskSkipped { return memory.file.prefix(at: offset) }
        guard memory.isInUse else { return disk?.prefix(at: offset) }
        var end = offset
        while let next = memory.file.prefix(at: end) ?? disk?.prefix(at: end), next.upperBound > end {
            end = next.upperBound
        }
        return offset < end ? offset..<end : nil
    }

    /// The ranges that are only in memory.
    package var storedInMemory: ByteRangeSet { memory.storedRanges }

    /// Evicts the given ranges from memory. The caller checks that no reader is near them.
    package func evictFromMemory(_ ranges: [Range<Int64>]) { memory.evict(ranges) }

    /// Discards all stored bytes of the version, because they may be at the wrong offsets.
    package func discardBytes() {
        let inMemory = Array(storedInMemory)
        memory.evict(inMemory)
        recordInvalidated(inMemory + (disk?.invalidateAll() ?? []))
    }

    /// Whether reads currently skip the bytes on disk.
    var isDiskSkipped: Bool {
        guard skipsDisk.load(ordering: .acquiring) else { return false }
        guard storesOnDisk else { return true }
        skipsDisk.store(false, ordering: .releasing)
        return false
    }

    /// Stores and reads bytes only in memory for ``retryTime``, because the file can't be opened, for example because
    /// too many files are open. The bytes on disk stay, and are read again afterwards.
    package func skipDisk(_ cause: CacheError) {
        pauseDiskStorage(cause)
        guard !skipsDisk.exchange(true, ordering: .acquiringAndReleasing) else { return }
        guard let owner, let disk else { return }
        let ranges = Array(disk.storedRanges)
        for user in owner.users(of: self) where !ranges.isEmpty { user.invalidated(ranges, of: self) }
    }

    // MARK: - The row

    /// The number of bytes that the version's row claims.
    var rowClaim: Int64 { state.withLock { $0.rowClaim ?? 0 } }

    /// The number of bytes that still have to be claimed for the row.
    var missingRowBytes: Int64 {
        state.withLock { $0.rowClaim == nil ? $0.description.rowBytes(url: url) + $0.padding : 0 }
    }

    /// Returns the number of bytes that a row with this description claims.
    func rowBytes(_ description: GenerationDescription) -> Int64 {
        description.rowBytes(url: url) + state.withLock { $0.padding }
    }

    /// Corrects the claim of the row by the unused space at the ends of stored ranges.
    ///
    /// - Parameter padding: The unused space in bytes; see ``ByteRanges/ByteRangeSet/padding(to:)``.
    /// - Returns: Whether the claim has changed, so that it has to be recorded.
    func setPadding(_ padding: Int64) -> Bool {
        let difference = state.withLock { state in
            let difference = GenerationDescription.countedPadding(padding) - state.padding
            state.padding += difference
            guard let claim = state.rowClaim else { return (isNew: difference != 0, claimed: Int64(0)) }
            state.rowClaim = claim + difference
            return (isNew: difference != 0, claimed: difference)
        }
        ledger.correctRows(by: difference.claimed)
        return difference.isNew
    }

    /// Records the number of bytes that have been claimed for the row.
    func recordRowClaim(_ rowBytes: Int64) {
        guard rowBytes > 0 else { return }
        let excess = state.withLock { state -> Int64 in
            // Another transfer may have been first, or the version may have been removed in the meantime. The
            // description may also have changed.
            guard state.rowClaim == nil, !state.hasRowEnded else { return rowBytes }
            let claim = state.description.rowBytes(url: url) + state.padding
            state.rowClaim = claim
            return rowBytes - claim
        }
        ledger.correctRows(by: -excess)
    }

    /// Claims the row of a resource without bytes.
    ///
    /// - Parameter isRequired: Whether to claim the row even if it does not fit.
    /// - Returns: Whether the row is claimed.
    func claimRow(isRequired: Bool = false) -> Bool {
        let rowBytes = missingRowBytes
        guard rowBytes > 0 else { return true }
        if case .reserved = ledger.reserve(0, rowBytes: rowBytes) {
            recordRowClaim(rowBytes)
            return true
        }
        guard isRequired else { return false }
        ledger.correctRows(by: rowBytes)
        recordRowClaim(rowBytes)
        return true
    }

    /// Returns the claim of the version's row to the account, because the row was removed.
    func endRowClaim() {
        let claim = state.withLock { state in
            defer { (state.rowClaim, state.hasRowEnded) = (nil, true) }
            return state.rowClaim ?? 0
        }
        ledger.correctRows(by: -claim)
    }

    // MARK: - For the store

    /// Whether the users of the version may have bytes that can be evicted.
    var mayHaveEvictableBytes: Bool { hasMoved.load(ordering: .relaxed) }

    /// Records that a reader or a transfer has moved, so that other bytes may be evictable.
    func recordMove() { hasMoved.store(true, ordering: .relaxed) }

    /// Records that a search for bytes to evict is querying the version's users.
    func recordQueried() { hasMoved.store(false, ordering: .relaxed) }

    /// The time for which bytes are stored in memory after the disk has failed. One attempt during this time costs
    /// little.
    package static let retryTime = Duration.seconds(2)

    /// Stores new bytes in memory for ``retryTime``, because the disk has failed. The bytes on disk stay readable.
    func pauseDiskStorage(_ cause: CacheError) {
        if let owner {
            let retryAt = owner.elapsed + Self.retryTime
            state.withLock { $0.retryAt = retryAt }
        }
        reportLoss(cause)
    }

    /// Reports once why bytes are not stored.
    func reportLoss(_ cause: CacheError) {
        let hasChanged = state.withLock { state in
            defer { state.lossCause = state.lossCause ?? cause }
            return state.lossCause == nil
        }
        if hasChanged { owner?.report(.notCached(key, url: url, cause)) }
    }

    /// Returns the description if it is not recorded yet, and otherwise `nil`. Each change is returned once.
    func takeDescription() -> GenerationDescription? {
        state.withLock { state in
            defer { state.isDescriptionNew = false }
            return state.isDescriptionNew ? state.description : nil
        }
    }

    /// Marks the description as new again, because it could not be recorded.
    func restoreDescription() { state.withLock { $0.isDescriptionNew = true } }

    /// Whether there are changes that are not recorded yet.
    var hasChanges: Bool { state.withLock { $0.isDescriptionNew } || disk?.hasChanges ?? false }

    /// Whether there are bytes on disk, or the resource is empty.
    var hasContent: Bool { disk.map { $0.storedByteCount > 0 || $0.isWhole } ?? false }

    /// Reports bytes that were found damaged or unreadable, and that are now missing.
    func recordInvalidated(_ ranges: [Range<Int64>], cause: CacheError? = nil) {
        guard let owner, !ranges.isEmpty else { return }
        owner.recordChange(of: self)
        // Bytes that another process has evicted are not damaged.
        if !isShared { for range in ranges { owner.report(.blocksInvalidated(key, url: url, range)) } }
        if let cause { pauseDiskStorage(cause) }
        for user in owner.users(of: self) { user.invalidated(ranges, of: self) }
    }

    /// Makes this the stored version if it is complete. Its short last block may have been stored before the end of the
    /// resource was known.
    func proveIfWhole() {
        guard !isProven.load(ordering: .acquiring), let disk, disk.isWhole, disk.storedByteCount > 0 else { return }
        prove()
    }

    func prove() {
        guard !isProven.exchange(true, ordering: .acquiringAndReleasing) else { return }
        owner?.recordFirstBlockStored(of: self)
    }
}

/// The description of a version, which is stored with its bytes.
package struct GenerationDescription: Sendable, Hashable {
    /// The length of the whole resource in bytes; `nil` if it is unknown.
    package var length: Int64?
    /// The media type that the origin reported.
    package var contentType: String?
    /// The identity of this version, as encoded by the engine. The store does not interpret it.
    package var version: String
    /// Other values that the engine stores, such as freshness. The store does not interpret them.
    package var fields: String

    /// Creates a description.
    package init(length: Int64? = nil, contentType: String? = nil, version: String = "", fields: String = "") {
        self.length = length
        self.contentType = contentType
        self.version = version
        self.fields = fields
    }

    /// The size of a page in the catalog, in bytes. Most volumes also allocate space to files in this unit.
    static let pageBytes: Int64 = 4096

    /// The minimum number of bytes that a resource uses on disk in addition to its media. The unused end of the last
    /// block of its file counts as 4 KiB, and its rows with their indices count as 2 KiB.
    static let leastRowBytes: Int64 = pageBytes + 2048

    /// Returns the part of the unused space that is counted separately. Every row already includes 4 KiB for it.
    static func countedPadding(_ padding: Int64) -> Int64 { max(0, padding - pageBytes) }

    /// Returns the number of bytes that a resource with this description uses on disk in addition to its media. The
    /// catalog stores each text that exceeds 2 KiB in separate pages.
    func rowBytes(url: String) -> Int64 {
        let texts = [url, contentType ?? "", version, fields].reduce(0) { $0 + Int64($1.utf8.count) }
        let page = Self.pageBytes
        return Self.leastRowBytes + (texts > 2048 ? (texts + page - 1) / page * page : 0)
    }
}

/// The row of a version in the catalog. Its number is `nil` until the version is recorded.
final class CatalogRow: Sendable {
    private let id: Mutex<Int64?>

    init(_ id: Int64? = nil) { self.id = Mutex(id) }

    var value: Int64? {
        get { id.withLock { $0 } }
        set { id.withLock { $0 = newValue } }
    }
}

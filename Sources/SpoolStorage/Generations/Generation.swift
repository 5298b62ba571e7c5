package import ByteRanges
import Synchronization

/// One version of a media file's bytes while it is open: on disk as far as the disk takes them, else in memory.
///
/// There is one object for each in a process, made by the store, whoever uses it; who uses it holds a ``Lease``. What is
/// in memory is never sealed or recorded, and is given up as soon as no reader is near it. Calls that touch bytes block,
/// but for ``readNow(_:into:)``; they belong on the blocking executor. The questions take short locks and may be asked
/// anywhere.
package final class Generation: Sendable {
    struct State {
        var description: GenerationDescription
        var isDescriptionNew = false
        var isKept: Bool
        /// What the ledger counts for its row; nil as long as nothing is to be recorded.
        var rowClaim: Int64?
        /// Whether it was reported that bytes go to memory.
        var isLossReported = false
    }

    /// The resource's name.
    package let key: CacheKey
    /// The version's random name.
    package let identifier: GenerationIdentifier
    /// Scheme, host and path: what people are shown.
    package let url: String
    /// What it was begun as a part of.
    let presentation: CacheKey?

    /// Nil if nothing of it may be on disk.
    let disk: MediaFile?
    let memory: GenerationMemory
    /// Its file could not be opened again and again: what is on disk stays there, and nobody reads it.
    let isDiskPassedOver = Atomic(false)
    /// Capacity on disk.
    let ledger: Ledger
    let row: CatalogRow
    let state: Mutex<State>
    /// It has left the cache, or the cache is closed: nothing lands any more.
    let isRetired = Atomic(false)
    /// Its first block has landed, or it was stored already.
    let isProven: Atomic<Bool>
    weak let owner: (any GenerationOwner)?

    init(
        key: CacheKey, identifier: GenerationIdentifier, url: String, description: GenerationDescription,
        disk: MediaFile?, row: CatalogRow, isKept: Bool, isProven: Bool, ledger: Ledger, memoryLedger: Ledger,
        owner: any GenerationOwner, presentation: CacheKey? = nil, rowClaim: Int64? = nil
    ) {
        self.key = key
        self.presentation = presentation
        self.identifier = identifier
        self.url = url
        self.disk = disk
        self.memory = GenerationMemory(length: description.length, ledger: memoryLedger)
        self.ledger = ledger
        self.row = row
        self.state = Mutex(State(description: description, isKept: isKept, rowClaim: rowClaim))
        self.isProven = Atomic(isProven)
        self.owner = owner
    }

    // MARK: - Questions

    /// Length, type, version and fields, as last described.
    package var description: GenerationDescription { state.withLock { $0.description } }

    /// Changes what is known of the version; recorded in the background.
    ///
    /// - Returns: False, and nothing changes, if the new length contradicts what has landed or was known: that would be
    ///   another version.
    package func update(_ change: (inout GenerationDescription) -> Void) -> Bool {
        let (isPossible, isNew) = state.withLock { state -> (Bool, Bool) in
            var description = state.description
            change(&description)
            guard description != state.description else { return (true, false) }
            if description.length != state.description.length {
                guard state.description.length == nil, let length = description.length, length >= 0,
                    length >= memory.file.landed.bounds?.upperBound ?? 0,
                    disk?.setLength(length) ?? true, memory.file.setLength(length)
                else { return (false, false) }
            }
            state.description = description
            state.isDescriptionNew = true
            if let former = state.rowClaim {
                let claim = description.rowBytes(url: url)
                state.rowClaim = claim
                ledger.correctRows(by: claim - former)
            }
            return (true, true)
        }
        if isNew {
            owner?.noteChange(of: self)
            proveIfWhole()
        }
        return isPossible
    }

    /// Whether new bytes go to disk.
    package var isKept: Bool { state.withLock { $0.isKept } && !isRetired.load(ordering: .relaxed) }

    /// Whether another process may change the file meanwhile: then there are no slices of it.
    package var isShared: Bool { disk?.isShared ?? false }

    /// Whether slices of it save anything: its bytes lie in the file as they are sent, and stay.
    package var handsOutSlices: Bool { disk.map { !$0.isShared && !$0.isEncrypted } ?? true }

    /// All that can be read, on disk and in memory.
    package var landed: ByteRangeSet {
        guard !isDiskPassedOver.load(ordering: .acquiring), var landed = disk?.landed else { return memory.file.landed }
        if memory.isInUse { landed.formUnion(memory.file.landed) }
        return landed
    }

    /// From `offset` to where the landed bytes around it end; nil if the byte at `offset` has not landed.
    package func landedPrefix(at offset: Int64) -> Range<Int64>? {
        if isDiskPassedOver.load(ordering: .acquiring) { return memory.file.prefix(at: offset) }
        guard memory.isInUse else { return disk?.prefix(at: offset) }
        var end = offset
        while let next = memory.file.prefix(at: end) ?? disk?.prefix(at: end), next.upperBound > end {
            end = next.upperBound
        }
        return offset < end ? offset..<end : nil
    }

    /// What is in memory only.
    package var landedInMemory: ByteRangeSet { memory.landed }

    /// Evicts ranges in memory that no reader is near.
    package func evictFromMemory(_ ranges: [Range<Int64>]) { memory.evict(ranges) }

    /// The file can't be opened now, as when the process has too many open: from now on the bytes come and go in memory.
    /// What is on disk is not given up: the next opening finds it.
    package func passOverDisk(_ cause: CacheError) {
        guard !isDiskPassedOver.exchange(true, ordering: .acquiringAndReleasing) else { return }
        stopKeeping(cause)
        guard let owner, let disk else { return }
        let ranges = Array(disk.landed)
        for user in owner.users(of: self) where !ranges.isEmpty { user.invalidated(ranges, of: self) }
    }

    // MARK: - The row

    /// The bytes that its row claims.
    var rowClaim: Int64 { state.withLock { $0.rowClaim ?? 0 } }

    /// What is still to be claimed for the row.
    var missingRowBytes: Int64 {
        state.withLock { $0.rowClaim == nil ? $0.description.rowBytes(url: url) : 0 }
    }

    /// So many bytes have been claimed for the row.
    func noteRowClaim(_ rowBytes: Int64) {
        guard rowBytes > 0 else { return }
        let excess = state.withLock { state -> Int64 in
            // Another transfer may have been first, and the description may have changed.
            guard state.rowClaim == nil else { return rowBytes }
            let claim = state.description.rowBytes(url: url)
            state.rowClaim = claim
            return rowBytes - claim
        }
        ledger.correctRows(by: -excess)
    }

    /// Claims the row of a resource of which no byte has to land.
    ///
    /// - Parameter isRequired: Whether it is claimed even if it does not fit.
    /// - Returns: Whether it is claimed.
    func claimRow(isRequired: Bool = false) -> Bool {
        let rowBytes = missingRowBytes
        guard rowBytes > 0 else { return true }
        if case .reserved = ledger.reserve(0, rowBytes: rowBytes) {
            noteRowClaim(rowBytes)
            return true
        }
        guard isRequired else { return false }
        ledger.correctRows(by: rowBytes)
        noteRowClaim(rowBytes)
        return true
    }

    /// Its row is gone, and its claim is given back.
    func endRowClaim() {
        let claim = state.withLock { state in
            defer { state.rowClaim = nil }
            return state.rowClaim ?? 0
        }
        ledger.correctRows(by: -claim)
    }

    // MARK: - For the store

    /// From now on new bytes go to memory; what is on disk stays readable.
    func stopKeeping(_ cause: CacheError) {
        state.withLock { $0.isKept = false }
        reportLoss(cause)
    }

    /// Tells once why bytes are not kept.
    func reportLoss(_ cause: CacheError) {
        let isNews = state.withLock { state in
            defer { state.isLossReported = true }
            return !state.isLossReported
        }
        if isNews { owner?.report(.notKept(key, url: url, cause)) }
    }

    /// What the catalog has not been told of the version itself.
    func takeDescription() -> GenerationDescription? {
        state.withLock { state in
            defer { state.isDescriptionNew = false }
            return state.isDescriptionNew ? state.description : nil
        }
    }

    /// The description could not be written.
    func restoreDescription() { state.withLock { $0.isDescriptionNew = true } }

    /// Whether the catalog does not know everything.
    var hasChanges: Bool { state.withLock { $0.isDescriptionNew } || disk?.hasChanges ?? false }

    /// Whether there are bytes on disk, or the whole is known to be empty.
    var hasContent: Bool { disk.map { $0.landedByteCount > 0 || $0.isWhole } ?? false }

    /// Tells users and the people of bytes that turned out bad or unreadable and are holes now.
    func noteInvalidated(_ ranges: [Range<Int64>], cause: CacheError? = nil) {
        guard let owner, !ranges.isEmpty else { return }
        owner.noteChange(of: self)
        // What another process has evicted is no damage.
        if !isShared { for range in ranges { owner.report(.blocksInvalidated(key, url: url, range)) } }
        if let cause { stopKeeping(cause) }
        for user in owner.users(of: self) { user.invalidated(ranges, of: self) }
    }

    /// An empty resource is whole without a byte; a last short block may have been there before its end was known.
    func proveIfWhole() {
        guard !isProven.load(ordering: .acquiring), let disk, disk.isWhole, disk.landedByteCount > 0 else { return }
        prove()
    }

    func prove() {
        guard !isProven.exchange(true, ordering: .acquiringAndReleasing) else { return }
        owner?.noteProof(of: self)
    }
}

import Crypto
import Foundation
import HTTPRanges
import HTTPTypes
import Logging
import Synchronization

/// What the catalog and the disk hold of a resource; all of these block.
extension CacheServices {
    /// A stored generation, opened.
    struct Stored: Sendable {
        var generation: Generation
        var freshness: StoredFreshness?
    }

    /// Opens what is stored of the resource; nil if nothing usable is.
    func stored(_ scheduler: Scheduler, requestFields: HTTPFields) -> Stored? {
        evictor.turns.withLock { _ in openStored(scheduler, requestFields) }
    }

    private func openStored(_ scheduler: Scheduler, _ requestFields: HTTPFields) -> Stored? {
        do {
            flusher.settle(scheduler.key)
            // What nobody has ever asked for is not there, and its player waits for nothing else.
            guard try catalog.resource(key: scheduler.key.hash)?.generation != nil else { return nil }
            // What a former opening in this process landed may not have been written down yet.
            flusher.write()
            guard let record = try catalog.resource(key: scheduler.key.hash)?.generation else { return nil }
            let freshness = try? JSONDecoder().decode(StoredFreshness.self, from: Data(record.fields.utf8))
            guard
                let version = try? JSONDecoder().decode(ResourceVersion.self, from: Data(record.version.utf8)),
                freshness?.matches(requestFields) ?? true
            else {
                if remove(key: scheduler.key) { capacity.release(record.storedBytes) }
                return nil
            }
            let disk = try directory.openMedia(record, key: scheduler.key.hash)
            // What the file turned out too short to hold no longer counts.
            capacity.release(max(0, record.storedBytes - disk.landedByteCount))
            let generation = Generation(
                row: record.id, identifier: record.identifier, version: version, disk: disk,
                memory: memoryFile(record.identifier, length: version.length))
            return Stored(generation: generation, freshness: freshness)
        } catch {
            scheduler.send(.notKept(cause: CacheError(storage: error, of: scheduler.address)))
            return nil
        }
    }

    /// Begins a generation in place of the stored one: on disk, or in memory if it may not or can't be there.
    ///
    /// A player waits for this, so the catalog is told a little later; it is told at once where a former generation
    /// has to go.
    func begin(
        _ version: ResourceVersion, of scheduler: Scheduler, replacing isReplacement: Bool, facts: ResponseCacheability
    ) -> Generation {
        guard facts.mayStore else {
            remove(key: scheduler.key)
            return inMemory(version)
        }
        do {
            let (identifier, disk) = try directory.makeMedia(key: scheduler.key.hash)
            let generation = Generation(
                row: nil, identifier: identifier, version: version, disk: disk,
                memory: memoryFile(identifier, length: version.length))
            let now = time.now()
            flusher.begin(scheduler.key) { self.record(generation, of: scheduler, facts, at: now) }
            if isReplacement { flusher.write() }
            return generation
        } catch {
            scheduler.send(.notKept(cause: CacheError(storage: error, of: scheduler.address)))
            return inMemory(version)
        }
    }

    /// Sees to it that the next generation finds its file made, in the background.
    func prepareFile() {
        Task(executorPreference: executor) { [directory] in directory.prepareFile() }
    }

    /// Tells the catalog of a generation that has begun. If it refuses, the bytes go to memory from now on, and the file
    /// goes when nobody has it open.
    private func record(_ generation: Generation, of scheduler: Scheduler, _ facts: ResponseCacheability, at date: Date) {
        let version = generation.version
        do {
            let begun = try catalog.beginGeneration(
                generation.identifier, key: scheduler.key.hash, url: scheduler.address, version: encoded(version),
                length: version.length, contentType: version.contentType, fields: encoded(facts.freshness), at: date)
            generation.row = begun.resource.generation?.id
            try? directory.removeMedia(begun.replaced)
        } catch {
            scheduler.stopKeeping(generation, cause: error)
            capacity.release(generation.abandon())
            try? directory.removeMedia([generation.identifier])
        }
    }

    private func inMemory(_ version: ResourceVersion) -> Generation {
        let identifier = GenerationIdentifier(random: time.random)
        return Generation(
            row: nil, identifier: identifier, version: version, disk: nil,
            memory: memoryFile(identifier, length: version.length))
    }

    private func memoryFile(_ identifier: GenerationIdentifier, length: Int64?) -> MediaFile {
        let sealer = BlockSealer(secret: SymmetricKey(size: .bits256), resource: "", generation: identifier)
        return MediaFile(file: nil, sealer: sealer, length: length)
    }

    /// Writes down what later responses told of a generation.
    func update(_ generation: Generation, of key: CacheKey, facts: ResponseCacheability?) {
        flusher.settle(key)
        guard let row = generation.row else { return }
        do {
            try catalog.update(
                generation: row, length: generation.version.length, version: encoded(generation.version),
                fields: facts.map { encoded($0.freshness) }, contentType: generation.version.contentType)
        } catch {
            events.logger.warning("the catalog could not be written: \(error)")
        }
    }

    /// Takes blocks out of the catalog.
    func forget(_ indices: [Int64], of generation: Generation) {
        flusher.waitForRound()
        guard let row = generation.row else { return }
        try? catalog.dropBlocks(row, indices: indices)
    }

    /// Removes all that is stored of a resource. Readers that have it open keep its bytes; what they hold of the
    /// capacity is given back by ``Generation/abandon()``.
    ///
    /// - Returns: Whether anything was stored.
    @discardableResult
    func remove(key: CacheKey) -> Bool {
        flusher.settle(key)
        guard let gone = try? catalog.remove(key: key.hash) else { return false }
        try? directory.removeMedia(gone)
        return !gone.isEmpty
    }

    private func encoded(_ value: some Encodable) -> String {
        (try? JSONEncoder().encode(value)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }
}

extension CacheError {
    init(storage error: any Error, of address: String) {
        self = error as? CacheError ?? CacheError(.storage, "\(address): \(error)", underlying: error)
    }
}

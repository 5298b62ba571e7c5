import ByteRanges
import Foundation
import Spool
import SpoolTesting
import Synchronization

/// Changes that an app, its user, its origin and its disk make while players read from a cache.
struct Housekeeper {
    let life: CacheLifetime
    let cache: MediaCache
    var random: SplitMix
    private var world: SimulationWorld { life.world }

    init(_ life: CacheLifetime, _ cache: MediaCache, _ random: SplitMix) {
        self.life = life
        self.cache = cache
        self.random = random
    }

    mutating func work() async {
        for _ in 0..<life.plan.chores as Range<Int> {
            await world.sleep(.microseconds(random.below(random.chance(2) ? 20_000 : 800_000)))
            if life.isOver || life.isClosing { return }
            world.countOperation()
            let chore = random.pick(world.plan.chores)
            world.log.add("housekeeper", "\(chore)")
            do {
                try await world.timed("\(chore)", in: life) { try await perform(chore) }
            } catch let error as CacheError {
                world.log.add("housekeeper", "\(chore): \(error.code)")
                if !explains(error, chore) { world.report(.operation, "\(chore): \(error.code) \(error)", in: life) }
            } catch {
                world.report(.operation, "\(chore): \(error)", in: life)
            }
            life.checkCapacity(cache)
        }
    }

    private func explains(_ error: CacheError, _ chore: Chore) -> Bool {
        switch error.code {
        case .storage: world.plan.failsToStore
        case .notStored: chore == .export || chore == .pin || chore == .unpin
        case .incomplete: chore == .export
        case .closed: life.isClosing
        default: false
        }
    }

    private mutating func perform(_ chore: Chore) async throws {
        let media = random.pick(world.plan.media)
        let viewer = Viewer(world.plan, &random)
        let source = MediaSource(url: media.url, headerFields: viewer.headerFields)
        let key = cache.key(for: source)
        switch chore {
        case .verify, .repair:
            let result = try await cache.verify(repairing: chore == .repair)
            world.log.add("housekeeper", "\(result)")
            // If an eviction was not recorded, records of removed blocks remain.
            let wasKilled = world.plan.lives.prefix(life.number).contains { $0.isKilled }
            if result.damagedBlockCount > 0, !world.plan.mayRepeat, !wasKilled {
                world.report(
                    .operation, "\(chore) finds \(result.damagedBlockCount) bad blocks of \(result.blockCount)",
                    in: life)
            }
        case .export: try await export(source, media, viewer)
        case .remove:
            try await removing([media]) { try await cache.remove(key) }
        case .removeAll:
            try await removing(world.plan.media) { try await cache.removeAll() }
        case .evict:
            let bytes = try await cache.evict(to: Int64(random.below(1_000_000)))
            // If the file system can't free a part of an open file, one block of it is lost. That block does not count
            // as evicted, because its space is still occupied.
            world.allowRepeating(bytes + (world.plan.punchesHoles ? 0 : 65_536), "evicted")
        case .setCapacity:
            let capacity = random.pick([nil, 0, 100_000, 500_000, 2_000_000]) as Int64?
            life.allowCapacity(capacity)
            try await cache.rememberCapacity(capacity.map { .bytes($0) } ?? .unlimited)
            life.recordCapacity(cache)
        case .pin: try await cache.pin(key)
        case .unpin: try await cache.unpin(key)
        case .list: try await list()
        case .changeVersion:
            // A version with less than one received block does not replace the stored version.
            world.allowRepeating(65_536, "\(media.path) changes")
            world.origin.change(media)
        case .outage:
            world.origin.setDown(true)
            await world.sleep(.milliseconds(random.below(8_000)))
            world.origin.setDown(false)
        case .jumpClock: world.jump(bySeconds: Double(random.below(4) - 2) * 86_400 * 365 * 3)
        case .fullDisk:
            life.setDiskFull(true)
            await world.sleep(.milliseconds(random.below(2_000)))
            life.setDiskFull(false)
        case .busyCatalog:
            life.setCatalogBusy(true)
            await world.sleep(.milliseconds(random.below(2_000)))
            life.setCatalogBusy(false)
        case .readExtremes: await readExtremes()
        case .deleteDirectory:
            if !life.isDeleted { life.deleteDirectory() }
        }
    }

    private func removing(_ media: [SimulatedMedia], _ remove: () async throws -> Void) async throws {
        for media in media {
            life.recordRemoved(media)
            world.allowRepeating(media.versions.map(\.length).max() ?? 0, "\(media.path) removed")
        }
        world.origin.state.withLock { $0.retries.beginRemoval(of: media.map(\.path)) }
        defer { world.origin.state.withLock { $0.retries.endRemoval() } }
        try await remove()
    }

    private func export(_ source: MediaSource, _ media: SimulatedMedia, _ viewer: Viewer) async throws {
        let target = "\(world.root)/export"
        // Removes the file from an earlier export, if there is one.
        try? FileManager.default.removeItem(atPath: target)
        try await cache.media(for: source).export(to: URL(fileURLWithPath: target))
        let bytes = try Data(contentsOf: URL(fileURLWithPath: target))
        // The variant that was received first is stored under the key itself. It may be in either language.
        var (viewer, other) = (viewer, viewer)
        (viewer.language, other.language) = (0, 1)
        let isRight = (media.versions(for: viewer) + media.versions(for: other)).contains { version in
            version.length == bytes.count && bytes.withUnsafeBytes { version.firstMismatch(in: $0, at: 0) == nil }
        }
        if !isRight { world.report(.wrongBytes, "exported \(media.path), \(bytes.count) bytes", in: life) }
    }

    /// Reads a resource whose origin states an extreme length, at its start and at its end.
    ///
    /// Any failure except a crash, wrong bytes or an endless wait is allowed.
    private mutating func readExtremes() async {
        let (url, length) = SimulationOrigin.extreme(random.below(SimulationOrigin.extremeLengths.count))
        let media = cache.media(for: url)
        for range in [MediaRange.bytes(0..<100), .suffix(100), .bytes(max(0, length - 300)..<max(0, length - 100))] {
            let reader = media.reader(range, chunkSize: 65_536)
            do {
                while let chunk = try await reader.next() {
                    if chunk.data.contains(where: { $0 != UInt8(ascii: "x") }) {
                        world.report(.wrongBytes, "\(url.path) \(chunk.range)", in: life)
                    }
                }
            } catch {
                world.log.add("housekeeper", "\(url.path) \(range): \(world.withoutRoot("\(error)"))")
            }
        }
    }

    private func list() async throws {
        for kept in try await cache.storedResources() {
            guard let length = kept.length, let last = kept.storedRanges.bounds?.upperBound, last > length else {
                continue
            }
            world.report(
                .operation, "\(kept.redactedURL) has \(length) bytes, and \(kept.storedRanges) are stored", in: life)
        }
    }
}

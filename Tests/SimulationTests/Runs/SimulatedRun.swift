import ByteRanges
import Foundation
import SpoolTesting
import Synchronization

@testable import Spool

/// A simulated run of a cache, which a seed determines.
///
/// A run starts with an empty directory and a random plan. The plan contains the media, an origin and a disk with or
/// without faults, and possibly a capacity. It also contains one to three lifetimes of the cache. Each lifetime has
/// concurrent players and maintenance tasks (chores). In a final, fault-free lifetime, all media is played from start
/// to end. Everything runs on one `SeededExecutor`.
final class SimulatedRun: Sendable {
    private let world: SimulationWorld
    /// Whether the log is retained even if the run has no findings.
    private let keepsLog: Bool
    private let isOver = Mutex(false)
    private let isUnwatched = Mutex(false)

    private init(_ world: SimulationWorld, keepsLog: Bool) {
        self.world = world
        self.keepsLog = keepsLog
    }

    /// Performs the run for a seed on the calling thread, which must not be one of Swift's shared threads.
    static func run(seed: UInt64, logLimit: Int = 40, watch: SimulationWatch) -> PlaybackReport {
        let root =
            "\(scratch)/spool-play-\(ProcessInfo.processInfo.processIdentifier)-\(runs.add(1, ordering: .relaxed).newValue)"
        // If the directory can't be created, the first attempt to open it fails. If the directory can't be removed, it
        // remains, which is harmless.
        try? FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: root) }
        let world = SimulationWorld(seed: seed, root: root, logLimit: logLimit)
        let number = watch.begin(world)
        defer { watch.end(number) }
        return SimulatedRun(world, keepsLog: logLimit > 1_000).run()
    }

    private static let runs = Atomic(0)
    /// The parent directory of the run's directory. It is in memory if the machine has an in-memory file system.
    private static let scratch =
        FileManager.default.fileExists(atPath: "/dev/shm") ? "/dev/shm" : NSTemporaryDirectory()

    private func run() -> PlaybackReport {
        let executor = world.executor
        let start = ContinuousClock.now
        _ = world.task { [self] in
            await main()
            isOver.withLock { $0 = true }
        }
        let watching = world.task { [self] in
            await world.watch { self.isOver.withLock { $0 } }
            isUnwatched.withLock { $0 = true }
        }
        let ending = executor.run(limit: 3_000_000) { self.isOver.withLock { $0 } || world.isAborted }
        switch ending {
        case .finished: break
        case .stuck:
            world.reportWaits(longerThan: .seconds(-1))
            world.report(.hang, "no task makes progress")
        case .endless: world.report(.hang, "no end after \(executor.steps) steps")
        }
        let steps = executor.steps
        // A sleeping task would retain this object.
        watching.cancel()
        _ = executor.run(limit: 100_000) { self.isUnwatched.withLock { $0 } }
        return PlaybackReport(
            seed: world.plan.seed, findings: world.findings, operations: world.operations, steps: steps,
            time: ContinuousClock.now - start, digest: world.log.digest,
            lines: keepsLog || !world.findings.isEmpty ? world.log.lines : [])
    }

    // MARK: - Lifetimes

    private func main() async {
        world.log.add("plan", "\(world.plan)")
        var random = SplitMix(world.plan.seed &+ 0x11FE)
        var files = CacheLifetime.newFiles()
        var directory = "\(world.root)/0"
        for number in world.plan.lives.indices {
            let life = CacheLifetime(
                number, world.plan.lives[number], world: world, memory: files, directory: directory)
            await live(life, random.fork())
            if world.isAborted { return }
            if let remains = life.remains { (files, directory) = remains }
            if world.plan.damages {
                for _ in 0..<random.below(4) as Range<Int> { CacheLifetime.damage(files, &random, world.log) }
            }
            if world.plan.damagesCatalog {
                world.recordUncounted(CatalogDamage.change(directory, &random, world.log))
            }
        }
        world.origin.clearFaults()
        let ending = SimulationPlan.Lifetime(ending: .closedAtRest, players: 0, steps: 0, chores: 0, killAt: 0)
        let last = CacheLifetime(world.plan.lives.count, ending, world: world, memory: files, directory: directory)
        last.healDisk()
        await finish(last)
        // After this time, all bytes in transit have been received.
        await world.sleep(.seconds(30))
        if files.openCount > 0 { world.report(.openFiles, "\(files.openCount) files are open after the end") }
        checkRepeats()
    }

    private func live(_ life: CacheLifetime, _ seed: SplitMix) async {
        var random = seed
        world.countOperation()
        guard let cache = await life.open() else { return }
        let isHurried = life.plan.ending == .closedInPlay
        var tasks: [Task<Void, Never>] = []
        for number in 0..<life.plan.players as Range<Int> {
            let player = Player("player \(life.number).\(number)", life, cache, random.fork())
            tasks.append(
                world.task {
                    var player = player
                    await player.play()
                })
        }
        let housekeeper = Housekeeper(life, cache, random.fork())
        tasks.append(
            world.task {
                var housekeeper = housekeeper
                await housekeeper.work()
            })
        if isHurried {
            await world.sleep(.microseconds(random.below(random.chance(2) ? 100_000 : 5_000_000)))
            life.isClosing = true
            await close(life, cache)
        }
        for task in tasks { await task.value }
        world.origin.setDown(false)
        if !life.isDead, !isHurried { await rest(life, cache) }
        if life.plan.isKilled { life.kill() }
        guard !isHurried else { return }
        life.isClosing = true
        if life.isDead {
            // Further actions of a killed process do not matter, so the run does not wait for them.
            _ = world.task { await cache.close() }
        } else {
            await close(life, cache)
        }
    }

    private func close(_ life: CacheLifetime, _ cache: MediaCache) async {
        let start = world.executor.clock.now.offset
        await world.timed("closing", in: life) { await cache.close() }
        let time = world.executor.clock.now.offset - start
        world.log.add("life \(life.number)", "closed")
        // A version with less than one received block does not replace another version, and is lost when the cache is
        // closed.
        for path in world.origin.changed { world.allowRepeating(65_536, "\(path) may have been discarded") }
        // A cache that could not write to its directory reopens the directory later, which creates it again.
        let mayReopen = world.plan.diskFaults + world.plan.catalogFaults > 0
        if life.isDeleted, !mayReopen, life.memory.paths.contains(where: { $0.hasPrefix(life.directory + "/") }) {
            world.report(.orphans, "files are in a directory that was deleted", in: life)
        }
        if time > .milliseconds(1_100) { world.report(.operation, "closing took \(time)", in: life) }
    }

    /// Plays all media from start to end, and then checks that no bytes are missing.
    private func finish(_ life: CacheLifetime) async {
        guard let cache = await life.open() else { return }
        for media in world.plan.media {
            var isDone: Set<Viewer> = []
            // If a reader finds a version other than the stored one, it ends with `resourceChanged`. This can happen
            // once for each viewer, so each viewer reads at most twice.
            for (viewer, attempt) in world.plan.viewers.flatMap({ [($0, 0), ($0, 1)] }) where !isDone.contains(viewer) {
                var random = SplitMix(UInt64(attempt))
                let opened = cache.media(for: MediaSource(url: media.url, headerFields: viewer.headerFields))
                var reading = Reading(whole: media, opened, viewer, &random)
                while await reading.step("last player", life, cache) {}
                if reading.isComplete {
                    isDone.insert(viewer)
                } else if attempt == 1, media.truncationOffset == nil {
                    world.report(.unexpectedError, "\(media.path) does not play to its end", in: life)
                }
            }
        }
        await rest(life, cache)
        do {
            try await cache.removeAll()
        } catch {
            world.report(.operation, "removing all: \(error)", in: life)
        }
        if cache.storedByteCount != 0 {
            world.report(.ledger, "\(cache.storedByteCount) bytes are counted, but none are stored", in: life)
        }
        life.isClosing = true
        await close(life, cache)
        let left = life.memory.paths.filter { $0.hasSuffix(".media") }
        if !left.isEmpty { world.report(.orphans, "\(left.count) media files remain after the removal", in: life) }
    }

    // MARK: - Checks

    /// Waits until the cache is idle, and checks that the counted, recorded and stored bytes agree.
    private func rest(_ life: CacheLifetime, _ cache: MediaCache) async {
        await world.sleep(.seconds(30))
        guard !life.isDead else { return }
        if world.origin.inFlight > 0 {
            world.report(.unneededTransfer, "\(world.origin.inFlight) bodies are open", in: life)
        }
        if cache.openResourceCount + cache.leaseCount > 0 {
            let text = "\(cache.openResourceCount) resources are open, \(cache.leaseCount) leases held"
            world.report(.leases, text, in: life)
        }
        do {
            // This call may reopen a directory that was not writable before.
            let contents = try await cache.storedResources()
            let stored = cache.storedByteCount
            guard !life.isDead else { return }
            let recorded = contents.reduce(0) { $0 + $1.storedByteCount }
            // Damage in a read-only directory can't be recorded. Bytes that the disk rejected stay counted if their
            // space could not be freed.
            let isExact = world.plan.punchesHoles && world.plan.removalFaults + world.plan.diskFaults == 0
            let isRight = isExact ? recorded == stored : recorded <= stored
            // A sum that was changed in the catalog is corrected only by `verify --repair`.
            if !isRight, cache.readOnlyReason == nil, !world.plan.damagesCatalog {
                world.report(.ledger, "\(stored) bytes are counted, \(recorded) are recorded", in: life)
            }
            checkPages(contents, life)
        } catch let error as CacheError where error.code == .storage && world.plan.failsToStore {
            return
        } catch {
            world.report(.operation, "contents: \(error)", in: life)
        }
        life.checkCapacity(cache)
        await checkLedger(life, cache)
    }

    /// Returns whether an earlier lifetime ended with a kill or a loss of power.
    private func hasEndedUncleanly(before life: CacheLifetime) -> Bool {
        world.plan.lives.prefix(life.number).contains { $0.ending == .powerLost || $0.isKilled }
    }

    private func hasLostPower(before life: CacheLifetime) -> Bool {
        world.plan.lives.prefix(life.number).contains { $0.ending == .powerLost }
    }

    /// Runs the cache's own check, unless the disk may fail or its contents were damaged or lost.
    private func checkLedger(_ life: CacheLifetime, _ cache: MediaCache) async {
        let isDamaged = world.plan.damages || world.plan.damagesCatalog
        guard !world.plan.failsToStore, !isDamaged, !hasLostPower(before: life) else { return }
        do {
            try await cache.store.checkLedger()
        } catch {
            world.report(.ledger, "\(error)", in: life)
        }
    }

    /// Checks that exactly the recorded blocks are on disk, unless the disk was damaged.
    private func checkPages(_ contents: [StoredResource], _ life: CacheLifetime) {
        guard !world.plan.damages, !world.plan.damagesCatalog, !life.isDeleted else { return }
        // An eviction or removal that was not recorded may leave records of removed bytes. Opening the file detects
        // them.
        let isUnclean = hasEndedUncleanly(before: life)
        let isAllRead = life.number == world.plan.lives.count && world.plan.freshness != .http
        guard isAllRead || !isUnclean else { return }
        // In the final lifetime, resources with extreme lengths are not read, so their files were not opened.
        let read = isUnclean ? contents.filter { !SimulationOrigin.isExtreme($0.redactedURL) } : contents
        let recorded = read.reduce(0) { sum, kept in
            sum + kept.storedRanges.reduce(0) { $0 + Block.indices(touching: $1).count }
        }
        let pages = life.memory.paths.filter { $0.hasSuffix(".media") }
            .reduce(0) { $0 + (life.memory.with($1, \.pageCount) ?? 0) }
        let isSpoilt =
            world.plan.failsToStore || !world.plan.punchesHoles || world.plan.removalFaults > 0
            || world.plan.lives.prefix(life.number).contains { $0.isKilled }
        if pages < recorded || pages > recorded && !isSpoilt {
            world.report(.disk, "\(recorded) blocks are recorded, \(pages) are on disk", in: life)
        }
    }

    /// Checks that each byte was sent once, unless there was a reason to repeat it.
    private func checkRepeats() {
        guard !world.plan.mayRepeat else { return }
        let allowed = world.origin.inHand + world.repeatAllowance
        let repeated = world.origin.repeated
        if repeated > allowed { world.report(.sentAgain, "\(repeated) bytes were sent again, \(allowed) may be") }
    }
}

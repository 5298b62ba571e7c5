import Spool
import SpoolTesting

/// A simulated player that opens, reads, seeks in, cancels and releases resources, as determined by its seed.
struct Player {
    let name: String
    let life: CacheLifetime
    let cache: MediaCache
    var random: SplitMix
    private let viewer: Viewer
    private var held: [MediaResource] = []
    private var world: SimulationWorld { life.world }

    init(_ name: String, _ life: CacheLifetime, _ cache: MediaCache, _ random: SplitMix) {
        self.name = name
        self.life = life
        self.cache = cache
        self.random = random
        viewer = Viewer(life.world.plan, &self.random)
    }

    mutating func play() async {
        for _ in 0..<life.plan.steps as Range<Int> {
            if life.isOver { return }
            world.countOperation()
            await pause()
            switch random.below(12) {
            case 0: held.removeAll()
            case 1:
                // The resource is opened, and released immediately.
                world.log.add(
                    name, "opens and releases \(open(random.pick(world.plan.media), viewer).key.hash.prefix(4))")
            case 2: await requestInformation()
            case 3: await readCancelled()
            case 4, 5: await readSeveral()
            case 6...9 where world.plan.preloads: await preload()
            default: await read()
            }
        }
    }

    private mutating func pause() async {
        switch random.below(6) {
        case 0: await world.sleep(.milliseconds(random.below(3_000)))
        case 1, 2: await world.sleep(.microseconds(random.below(20_000)))
        default: break
        }
    }

    private mutating func open() -> (SimulatedMedia, MediaResource) {
        let media = random.pick(world.plan.media)
        if let known = held.first(where: { $0.source.url == media.url }), random.chance(2) { return (media, known) }
        let opened = open(media, viewer)
        if random.chance(2) { held.append(opened) }
        if held.count > 3 { held.removeFirst() }
        return (media, opened)
    }

    private func open(_ media: SimulatedMedia, _ viewer: Viewer) -> MediaResource {
        cache.media(for: MediaSource(url: media.url, headerFields: viewer.headerFields))
    }

    private mutating func range(in media: SimulatedMedia) -> MediaRange {
        let length = Int(media.versions[0].length)
        let start = Int64(
            random.chance(3) ? length / 65_536 * 65_536 / 2 : random.below(length + (random.chance(20) ? 9 : 0)))
        switch random.below(6) {
        case 0: return .suffix(Int64(1 + random.below(100_000)))
        case 1, 2: return .bytes(start..<start + Int64(1 + random.below(200_000)))
        case 3: return .from(start)
        default: return .all
        }
    }

    // MARK: - Reads

    private mutating func read() async {
        let (media, opened) = open()
        var reading = Reading(media, opened, range(in: media), viewer, &random)
        world.log.add(name, "reads \(media.path) \(reading.check.range)")
        while !life.isOver, await reading.step(name, life, cache) { await pauseShortly() }
        if random.chance(2) { reading.reader.cancel() }
    }

    /// Reads bytes that no player waits for.
    private mutating func preload() async {
        let media = random.pick(world.plan.media)
        var viewer = viewer
        // Under `http` freshness, a different header field might select a different resource.
        viewer.preloads = true
        let source = world.plan.freshness == .http ? self.viewer : viewer
        var reading = Reading(media, open(media, source), range(in: media), viewer, &random)
        world.log.add(name, "preloads \(media.path) \(reading.check.range)")
        while !life.isOver, await reading.step(name, life, cache) { await pauseShortly() }
    }

    /// Reads one resource with several readers, whose reads alternate at random.
    private mutating func readSeveral() async {
        let (media, opened) = open()
        var readings: [Reading] = []
        for _ in 0..<2 + random.below(3) as Range<Int> {
            readings.append(Reading(media, opened, range(in: media), viewer, &random))
        }
        world.log.add(name, "reads \(media.path) \(readings.map(\.check.range))")
        while !life.isOver, !readings.isEmpty {
            let index = random.below(readings.count)
            if await !readings[index].step(name, life, cache) { readings.remove(at: index) }
            await pauseShortly()
        }
    }

    /// Starts a read, and cancels its task or its reader after a random time.
    private mutating func readCancelled() async {
        let (media, opened) = open()
        var reading = Reading(media, opened, range(in: media), viewer, &random)
        world.log.add(name, "reads \(media.path) \(reading.check.range) and cancels")
        reading.isCancelled = true
        reading.registerReader(world.origin)
        let (name, life, cache) = (name, life, cache)
        let task = world.task { [reading] in
            var reading = reading
            while !life.isOver, await reading.step(name, life, cache) {}
        }
        await world.sleep(.microseconds(random.below(random.chance(3) ? 400_000 : 3_000)))
        if random.chance(2) { task.cancel() } else { reading.reader.cancel() }
        await task.value
    }

    private mutating func requestInformation() async {
        let (media, opened) = open()
        world.log.add(name, "asks about \(media.path)")
        let place = RetryRegistration(media, viewer, readers: 1, world.origin)
        defer { withExtendedLifetime(place) {} }
        do {
            let name = name
            let information = try await world.timed("\(name) information of \(media.path)", in: life) {
                try await opened.contentInformation()
            }
            if let length = information.length, !media.versions.contains(where: { $0.length == length }) {
                world.report(.operation, "\(media.path) reports \(length) bytes", in: life)
            }
        } catch let error as CacheError where ReadCheck(media, .bytes(0..<1), viewer).explains(error, in: life) {
            world.log.add(name, "\(error.code)")
        } catch {
            world.report(.unexpectedError, "information of \(media.path): \(error)", in: life)
        }
    }

    private mutating func pauseShortly() async {
        if random.chance(4) { await world.sleep(.microseconds(random.below(random.chance(10) ? 2_000_000 : 4_000))) }
    }
}

/// A reader, and the check of the bytes that it delivers.
struct Reading: Sendable {
    let reader: MediaReader
    var check: ReadCheck
    /// Whether the run cancels the reader.
    var isCancelled = false
    /// Whether the reader has delivered all bytes.
    private(set) var isComplete = false
    private var chunksLeft: Int
    private let isPlayback: Bool
    private var place: RetryRegistration?

    /// Creates a value that reads all bytes.
    init(whole media: SimulatedMedia, _ opened: MediaResource, _ viewer: Viewer, _ random: inout SplitMix) {
        self.init(media, opened, .all, viewer, &random)
        chunksLeft = .max
    }

    init(
        _ media: SimulatedMedia, _ opened: MediaResource, _ range: MediaRange, _ viewer: Viewer,
        _ random: inout SplitMix
    ) {
        let isPreload = viewer.preloads
        let chunkSize = random.pick([700, 20_000, 65_536, 150_000, 262_144])
        reader =
            isPreload
            ? opened.preloadReader(range, chunkSize: chunkSize) : opened.reader(range, chunkSize: chunkSize)
        check = ReadCheck(media, range, viewer)
        // A reader of a suffix does not count as playback, because a suffix needs several consecutive requests.
        isPlayback = !isPreload && !check.isSuffix
        chunksLeft = random.chance(2) ? .max : 1 + random.below(8)
        if chunkSize < 1_000 { chunksLeft = min(chunksLeft, 60) }
    }

    /// Registers the reader with the origin's retry check, until the last copy of this value is released.
    mutating func registerReader(_ origin: SimulationOrigin) {
        guard place == nil else { return }
        place = RetryRegistration(check.media, check.viewer, readers: check.isSuffix ? 2 : 1, origin)
    }

    /// Reads and checks one chunk, and returns whether the read continues.
    mutating func step(_ name: String, _ life: CacheLifetime, _ cache: MediaCache) async -> Bool {
        let world = life.world
        guard chunksLeft > 0 else { return false }
        chunksLeft -= 1
        registerReader(world.origin)
        do {
            let (reader, check) = (reader, check)
            let next = try await world.timed("\(name) \(check.place)", in: life, isPlayback: isPlayback) {
                try await reader.next()
            }
            guard let chunk = next else {
                if !isCancelled, let finding = check.end() { world.report(finding.kind, finding.text, in: life) }
                isComplete = true
                world.log.add(name, "ends \(check.media.path)")
                return false
            }
            world.log.add(name, "gets \(check.media.path) \(chunk.range)")
            life.checkCapacity(cache)
            life.checkMemoryAndFiles(cache)
            guard let finding = self.check.take(chunk) else { return true }
            world.report(finding.kind, finding.text, in: life)
        } catch let error as CacheError {
            world.log.add(name, "\(check.place): \(error.code)")
            if !check.explains(error, in: life) {
                world.report(.unexpectedError, "\(check.place): \(error.code) \(error)", in: life)
            }
        } catch {
            if !isCancelled { world.report(.unexpectedError, "\(check.place): \(error)", in: life) }
        }
        return false
    }
}

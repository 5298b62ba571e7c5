import Spool
import SpoolTesting

/// What one play is made of: its media, its origin's and its disk's moods, its lives. All of it follows from the seed.
struct PlayPlan: Sendable {
    /// How a life of the cache ends.
    enum Ending: Sendable, CaseIterable {
        /// Everybody has gone, then the cache is closed.
        case closedAtRest
        /// It is closed while players read.
        case closedInPlay
        /// Its process is killed at a call of the file system.
        case killed
        /// The same, and what had not reached the disk is lost.
        case powerLost
    }

    /// From one opening of the directory to its end.
    struct Life: Sendable {
        var ending: Ending
        var players: Int
        /// Things that each player does.
        var steps: Int
        /// Things that are done to the cache meanwhile.
        var chores: Int
        /// The call of the file system at which the kill comes.
        var killAt: Int
        var isKilled: Bool { ending == .killed || ending == .powerLost }
    }

    let seed: UInt64
    var media: [SimulatedMedia] = []
    var faults = OriginFaults()
    /// Whether versions change at the origin.
    var changes = false
    var capacity: Int64?
    /// Of the calls of the file system, one in so many fails; 0: none.
    var diskFaults = 0
    /// Of the calls that the catalog makes of its disk, one in so many fails; 0: none.
    var catalogFaults = 0
    /// Whether bytes on disk are damaged between two lives.
    var damages = false
    /// Whether one cell of the catalog is changed between two lives.
    var damagesCatalog = false
    /// Whether the file system can free a part of a file.
    var punchesHoles = true
    /// One of this many removals of media files fails; 0 means none.
    var removalFaults = 0
    /// The age at which unused media is evicted. No play takes that long.
    var maximumAge: Duration?
    /// Whether some players' credentials are refused.
    var refusesSome = false
    /// Whether some players only preload.
    var preloads = false
    var chores: [Chore] = []
    var lives: [Life] = []
    var freshness = FreshnessPolicy.immutable

    /// Draws a plan.
    init(seed: UInt64) {
        self.seed = seed
        var random = SplitMix(seed &+ 0x5E_ED)
        changes = random.chance(4)
        if random.chance(3) { capacity = random.pick([0, 65_536, 200_000, 300_000, 700_000, 1_500_000]) }
        // Small media where the capacity is small: making room for each chunk of a large one only takes long.
        var longest = (capacity ?? .max) < 300_000 ? 400_000 : 1_200_000
        var count = 1 + random.below(3)
        // So many that not all of their files can be open.
        if random.chance(10) { (longest, count) = (100_000, 9 + random.below(4)) }
        media = (0..<count as Range<Int>).map {
            SimulatedMedia(number: $0, longest: longest, changes: changes, &random)
        }
        if random.chance(2) { faults = OriginFaults(drawn: &random) }
        if random.chance(5) { diskFaults = random.pick([8, 30, 100, 300]) }
        if random.chance(8) { catalogFaults = random.pick([10, 40, 150]) }
        damages = random.chance(6)
        freshness = random.pick([.immutable, .immutable, .immutable, .immutable, .revalidate, .http])
        if freshness == .http { media = media.map { $0.toldApart(&random) } }
        refusesSome = freshness != .http && random.chance(5)
        preloads = random.chance(3)
        // Whether a preload goes first can be told only where a player waits for nothing but bytes on their way.
        let isForPreloads = preloads && random.chance(2)
        if isForPreloads { calm(&random) }
        chores = Chore.allCases.filter { chore in
            switch chore {
            case .changeVersion: changes
            case .setCapacity: capacity != nil
            case .outage: faults.isAny
            case .fullDisk: diskFaults + catalogFaults > 0
            case .busyCatalog: catalogFaults > 0
            case .deleteDirectory: random.chance(10)
            case .readExtremes: false
            default: random.chance(3)
            }
        }
        lives = (0..<1 + random.below(3) as Range<Int>).map { _ in
            Life(
                ending: random.chance(2) ? .closedAtRest : random.pick(Ending.allCases),
                players: isForPreloads ? 3 + random.below(2) : 1 + random.below(4),
                steps: 2 + random.below(6), chores: chores.isEmpty ? 0 : random.below(10),
                killAt: 5 + random.below(random.chance(2) ? 60 : 500))
        }
        if !isForPreloads { drawConditions() }
    }

    /// Draws conditions of the machine, apart from the other draws.
    private mutating func drawConditions() {
        var random = SplitMix(seed &+ 0xC0_4D)
        punchesHoles = !random.chance(8)
        if random.chance(8) { removalFaults = random.pick([1, 3, 10]) }
        damagesCatalog = random.chance(8)
        if random.chance(6) {
            maximumAge = .seconds(30 * 86_400)
            chores.append(.jumpClock)
        }
        if random.chance(6) { chores.append(.readExtremes) }
        for index in lives.indices where !chores.isEmpty {
            lives[index].chores = max(lives[index].chores, random.below(4))
        }
    }

    /// Origin and disk do all that they should.
    private mutating func calm(_ random: inout SplitMix) {
        (faults, capacity, diskFaults, catalogFaults) = (OriginFaults(), nil, 0, 0)
        (damages, refusesSome) = (false, false)
        for index in media.indices {
            media[index].failingPlace = nil
            media[index].latency = .milliseconds(random.pick([30, 200]))
        }
    }

    /// Whether bytes may be asked for again without bound: they were not kept, or spoilt.
    var mayRepeat: Bool {
        capacity != nil || failsToStore || damages || damagesCatalog || lives.contains { $0.ending == .powerLost }
            || freshness == .http
            || media.contains { !$0.hasRanges || !$0.tellsLength }
    }

    /// Whether the disk refuses what is to be kept, or takes it away.
    var failsToStore: Bool { diskFaults + catalogFaults > 0 || chores.contains(.deleteDirectory) }

    /// Those who may ask in the last life.
    var viewers: [Viewer] {
        var other = Viewer()
        guard freshness == .http else { return [other] }
        (other.user, other.language) = (1, 1)
        return [Viewer(), other]
    }

    /// How the cache is configured.
    var configuration: MediaCache.Configuration {
        var configuration = MediaCache.Configuration()
        configuration.capacity = capacity.map { .bytes($0) } ?? .remembered
        configuration.freshness = freshness
        configuration.readAhead.firstRequest = 128 << 10
        configuration.readAhead.largestRequest = 512 << 10
        configuration.readAhead.window = 768 << 10
        configuration.memoryLimit = 1 << 20
        configuration.maximumAge = maximumAge
        return configuration
    }
}

/// What is done to a cache while players read.
enum Chore: String, CaseIterable, Sendable {
    case verify, repair, export, remove, removeAll, evict, setCapacity, pin, unpin, list
    case changeVersion, outage, jumpClock, fullDisk, busyCatalog, deleteDirectory
    case readExtremes
}

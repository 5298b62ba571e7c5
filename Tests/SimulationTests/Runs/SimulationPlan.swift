import Spool
import SpoolTesting

/// The plan for one simulated run: its media, the faults of its origin and disk, and the lifetimes of its cache. The
/// seed determines the entire plan.
struct SimulationPlan: Sendable {
    /// The way in which a lifetime of the cache ends.
    enum Ending: Sendable, CaseIterable {
        /// The cache is closed after all players have left.
        case closedAtRest
        /// The cache is closed while players read.
        case closedInPlay
        /// The process is killed during a file system call.
        case killed
        /// The process is killed, and bytes that were not synchronized to the disk are lost.
        case powerLost
    }

    /// The period from the time when the directory is opened until the cache is closed or killed.
    struct Lifetime: Sendable {
        var ending: Ending
        var players: Int
        /// The number of actions that each player performs.
        var steps: Int
        /// The number of chores that run during this lifetime.
        var chores: Int
        /// The number of the file system call during which the process is killed.
        var killAt: Int
        var isKilled: Bool { ending == .killed || ending == .powerLost }
    }

    let seed: UInt64
    var media: [SimulatedMedia] = []
    var faults = OriginFaults()
    /// Whether versions change at the origin.
    var changes = false
    var capacity: Int64?
    /// The average number of file system calls per failed call; 0 means that none fail.
    var diskFaults = 0
    /// The average number of the catalog's disk calls per failed call; 0 means that none fail.
    var catalogFaults = 0
    /// Whether bytes on disk are damaged between two lifetimes.
    var damages = false
    /// Whether one cell of the catalog is changed between two lifetimes.
    var damagesCatalog = false
    /// Whether the file system can free a part of a file.
    var punchesHoles = true
    /// The average number of media file removals per failed removal; 0 means that none fail.
    var removalFaults = 0
    /// The age at which unused media is evicted. It exceeds the duration of any run.
    var maximumAge: Duration?
    /// Whether the credentials of some players are rejected.
    var refusesSome = false
    /// Whether some players only preload.
    var preloads = false
    var chores: [Chore] = []
    var lives: [Lifetime] = []
    var freshness = FreshnessPolicy.immutable

    /// Creates the random plan that a seed determines.
    init(seed: UInt64) {
        self.seed = seed
        var random = SplitMix(seed &+ 0x5E_ED)
        changes = random.chance(4)
        if random.chance(3) { capacity = random.pick([0, 65_536, 200_000, 300_000, 700_000, 1_500_000]) }
        // If the capacity is small, the media is small, because freeing space for each chunk of large media takes a
        // long time.
        var longest = (capacity ?? .max) < 300_000 ? 400_000 : 1_200_000
        var count = 1 + random.below(3)
        // This count exceeds the number of media files that a cache may have open.
        if random.chance(10) { (longest, count) = (100_000, 9 + random.below(4)) }
        media = (0..<count as Range<Int>).map {
            SimulatedMedia(number: $0, longest: longest, changes: changes, &random)
        }
        if random.chance(2) { faults = OriginFaults(drawn: &random) }
        if random.chance(5) { diskFaults = random.pick([8, 30, 100, 300]) }
        if random.chance(8) { catalogFaults = random.pick([10, 40, 150]) }
        damages = random.chance(6)
        freshness = random.pick([.immutable, .immutable, .immutable, .immutable, .revalidate, .http])
        if freshness == .http { media = media.map { $0.separatingViewers(&random) } }
        refusesSome = freshness != .http && random.chance(5)
        preloads = random.chance(3)
        // The priority of preloads can be checked only if players wait only for bytes in transit.
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
            Lifetime(
                ending: random.chance(2) ? .closedAtRest : random.pick(Ending.allCases),
                players: isForPreloads ? 3 + random.below(2) : 1 + random.below(4),
                steps: 2 + random.below(6), chores: chores.isEmpty ? 0 : random.below(10),
                killAt: 5 + random.below(random.chance(2) ? 60 : 500))
        }
        if !isForPreloads { drawConditions() }
    }

    /// Chooses random properties of the machine, independently of the other random choices.
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

    /// Removes all faults of the origin and the disk from the plan.
    private mutating func calm(_ random: inout SplitMix) {
        (faults, capacity, diskFaults, catalogFaults) = (OriginFaults(), nil, 0, 0)
        (damages, refusesSome) = (false, false)
        for index in media.indices {
            media[index].truncationOffset = nil
            media[index].latency = .milliseconds(random.pick([30, 200]))
        }
    }

    /// Whether bytes may be requested again without a limit, because they were not stored or were damaged.
    var mayRepeat: Bool {
        capacity != nil || failsToStore || damages || damagesCatalog || lives.contains { $0.ending == .powerLost }
            || freshness == .http
            || media.contains { !$0.hasRanges || !$0.statesLength }
    }

    /// Whether the disk may reject or remove bytes that should be stored.
    var failsToStore: Bool { diskFaults + catalogFaults > 0 || chores.contains(.deleteDirectory) }

    /// The viewers that may send requests during the final lifetime.
    var viewers: [Viewer] {
        var other = Viewer()
        guard freshness == .http else { return [other] }
        (other.user, other.language) = (1, 1)
        return [Viewer(), other]
    }

    var configuration: MediaCache.Configuration {
        var configuration = MediaCache.Configuration()
        configuration.capacity = capacity.map { .bytes($0) } ?? .remembered
        configuration.freshness = freshness
        configuration.readAhead.initialRequestSize = 128 << 10
        configuration.readAhead.maximumRequestSize = 512 << 10
        configuration.readAhead.maximumReadAhead = 768 << 10
        configuration.memoryLimit = 1 << 20
        configuration.maximumAge = maximumAge
        return configuration
    }
}

/// An action on a cache while players read.
enum Chore: String, CaseIterable, Sendable {
    case verify, repair, export, remove, removeAll, evict, setCapacity, pin, unpin, list
    case changeVersion, outage, jumpClock, fullDisk, busyCatalog, deleteDirectory
    case readExtremes
}

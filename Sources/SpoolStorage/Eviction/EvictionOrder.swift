package import ByteRanges
package import Foundation

/// The resources that may be evicted, in the order of eviction. This type passes changes to a strategy, which
/// identifies resources only by number.
///
/// A presentation and all its parts count as one resource. The order is a value type that uses neither I/O nor a clock.
package struct EvictionOrder: Sendable {
    /// The next resource or presentation to evict.
    package struct Victim: Sendable {
        /// The number that identifies the victim in this order.
        var number: Int
        /// The resources to evict, in this order. The resources of a large presentation are returned in several steps.
        package var members: [Member]
    }

    /// A resource of a victim.
    package struct Member: Sendable {
        package var key: CacheKey
        /// The numbers of stored bytes of the resource.
        package var bytes: EvictableBytes
        /// The part of the resource to evict.
        package var part: EvictionVictim.Part
        /// The offset at which the resource's last playback session stopped.
        package var stop: Int64?
    }

    /// A unit of eviction: a resource, or a presentation with its parts.
    private struct Unit: Sendable {
        var key: CacheKey
        var bytes = EvictableBytes()
        /// The parts in the order in which they were added. Some of them may have been removed since.
        var parts: [CacheKey] = []
        /// The number of parts that have bytes.
        var partCount = 0
        /// The time of the last use, in seconds since 1970.
        var lastUse: Double?
        /// The numbers of bytes of the unit's members, by the quota toward which they count.
        var ofQuotas: [Int: EvictableBytes] = [:]
    }

    private struct Place: Sendable {
        var unit: Int
        var bytes: EvictableBytes
        var stop: Int64 = -1
        /// The quota toward which the resource counts.
        var quota: Int?
    }

    /// A change to the quota that a resource counts toward.
    package enum QuotaChange: Sendable {
        /// The quota does not change.
        case none
        /// The resource counts toward the quota with the given number, or toward no quota if the number is `nil`.
        case to(Int?)
    }

    /// The maximum time in seconds between two uses of one playback session.
    package static let sessionGap: TimeInterval = 600
    /// The time in seconds during which a presentation counts as being played after a use.
    private static let playingTime: TimeInterval = 60
    /// The maximum number of parts, and of bytes in them, that form the start of a presentation.
    private static let startParts = (count: 8, bytes: Int64(2 << 20))

    /// The maximum size that is counted for a resource, in bytes, so that sums over millions of resources do not
    /// overflow.
    private static let largest: Int64 = 1 << 40

    private var strategy: any EvictionStrategy
    /// The order of each quota, with the resources that count toward it.
    private var quotas: [(strategy: any EvictionStrategy, byteCount: Int64)]
    private var units: [Unit?] = []
    private var free: [Int] = []
    private var places: [CacheKey: Place] = [:]
    /// The units of presentations that are not stored themselves.
    private var presentations: [CacheKey: Int] = [:]
    /// The number of resources that were examined to find victims.
    package private(set) var examinedCount = 0

    /// Creates an empty order.
    ///
    /// - Parameters:
    ///   - makeStrategy: A function that creates a strategy.
    ///   - quotaCount: The number of quotas.
    package init(_ makeStrategy: () -> any EvictionStrategy, quotaCount: Int = 0) {
        strategy = makeStrategy()
        quotas = (0..<quotaCount).map { _ in (makeStrategy(), 0) }
    }

    /// The number of resources in the order.
    package var count: Int { places.count }

    // MARK: - Changes

    /// Sets the stored bytes of a resource. A new resource is added even if it has no bytes.
    ///
    /// - Parameters:
    ///   - date: The time of the change. If the resource is new, this is the time of its first use.
    ///   - quota: The change to the quota that the resource counts toward.
    package mutating func update(
        _ key: CacheKey, partOf whole: CacheKey?, _ storedRanges: ByteRangeSet, at date: Date,
        quota: QuotaChange = .none
    ) {
        let number = unit(of: key, partOf: whole)
        let before = places[key]
        var place = before ?? Place(unit: number, bytes: EvictableBytes())
        let previous = place.bytes
        if case .to(let quota) = quota, quota != place.quota {
            if let counted = place.quota { add(EvictableBytes(), to: number, insteadOf: previous, ofQuota: counted) }
            place.quota = quota
            if let quota { add(previous, to: number, insteadOf: EvictableBytes(), ofQuota: quota) }
        }
        place.bytes = bytes(storedRanges, of: key, in: number, stop: place.stop)
        places[key] = place
        if before == nil { count(key, in: number, by: 1) }
        if units[number]?.lastUse == nil { units[number]?.lastUse = date.timeIntervalSince1970 }
        add(place.bytes, to: number, insteadOf: previous, quota: place.quota)
    }

    /// Returns whether the order contains a resource.
    package func contains(_ key: CacheKey) -> Bool { places[key] != nil }

    /// Sets the stored bytes of a resource that stays part of the same presentation.
    ///
    /// - Returns: `false`, and changes nothing, if the order does not contain the resource.
    package mutating func update(_ key: CacheKey, _ storedRanges: ByteRangeSet, at date: Date) -> Bool {
        guard places[key] != nil else { return false }
        update(key, partOf: nil, storedRanges, at: date)
        return true
    }

    /// Returns whether a resource counts as part of `whole`, or of the presentation that `whole` is part of.
    package func isPart(_ key: CacheKey, of whole: CacheKey) -> Bool {
        guard let unit = places[key]?.unit else { return false }
        return unit == places[whole]?.unit ?? presentations[whole]
    }

    /// Removes a resource from the order, because it has no bytes or must not be evicted.
    package mutating func remove(_ key: CacheKey) {
        guard let place = places.removeValue(forKey: key) else { return }
        count(key, in: place.unit, by: -1)
        add(EvictableBytes(), to: place.unit, insteadOf: place.bytes, quota: place.quota)
        guard let unit = units[place.unit], places[unit.key]?.unit != place.unit else { return }
        guard unit.partCount == 0 else {
            presentations[unit.key] = place.unit
            return
        }
        units[place.unit] = nil
        presentations[unit.key] = nil
        free.append(place.unit)
    }

    /// Records a use of a resource.
    ///
    /// - Parameter isEnd: Whether this is the end of a use, which does not start a session.
    package mutating func use(_ key: CacheKey, partOf whole: CacheKey? = nil, at date: Date, isEnd: Bool = false) {
        let number = places[key]?.unit ?? whole.flatMap { places[$0]?.unit ?? presentations[$0] }
        guard let number, let last = units[number]?.lastUse else { return }
        let seconds = date.timeIntervalSince1970
        units[number]?.lastUse = seconds
        let startsSession = !isEnd && seconds - last > Self.sessionGap
        report(number) { $0.use(number, startsSession: startsSession) }
    }

    /// Restores the recorded history of a resource.
    package mutating func restore(_ history: PlaybackHistory, of key: CacheKey) {
        guard let place = places[key], units[place.unit]?.key == key else { return }
        for _ in 0..<min(3, history.sessions) { report(place.unit) { $0.use(place.unit, startsSession: true) } }
        if history.isConsumed { markConsumed(key) }
    }

    /// Records that playback of a resource has stopped at `stop`, or at its end if `stop` is `nil`. The position takes
    /// effect when the resource's bytes next change.
    package mutating func setStop(_ stop: Int64?, of key: CacheKey) { places[key]?.stop = stop ?? -1 }

    /// Records that a resource to be played only once was played to its end.
    package mutating func markConsumed(_ key: CacheKey) {
        if let place = places[key] { report(place.unit) { $0.markConsumed(place.unit) } }
    }

    // MARK: - Victims

    /// Returns the number of bytes that count toward a quota.
    package func byteCount(ofQuota quota: Int) -> Int64 { quotas[quota].byteCount }

    /// Returns the next victim. The result is the same until the victim's bytes are evicted or the victim is held.
    ///
    /// - Parameter quota: The quota to evict from; `nil` for all resources.
    package mutating func nextVictim(
        isLastResort: Bool, ofQuota quota: Int? = nil, at date: Date, limit: Int = 128
    ) -> Victim? {
        while let found = nextInStrategy(isLastResort, quota) {
            guard let unit = units[found.resource] else {
                setHeld(true, found.resource)
                continue
            }
            let (members, examined) = members(of: unit, found.resource, found.part, quota, limit, at: date)
            examinedCount += examined
            return Victim(number: found.resource, members: members)
        }
        return nil
    }

    /// Returns whether a victim is a presentation used recently enough to count as being played. No reader is open
    /// while playback moves from one part of the presentation to the next.
    package func isPlaying(_ victim: Victim, at date: Date) -> Bool {
        units[victim.number].map { isPlaying($0, at: date) } ?? false
    }

    private func isPlaying(_ unit: Unit, at date: Date) -> Bool {
        guard unit.partCount > 0, let last = unit.lastUse else { return false }
        // Times of use may be slightly ahead of the clock.
        return abs(date.timeIntervalSince1970 - last) < Self.playingTime
    }

    /// Skips a victim until it is released.
    package mutating func hold(_ victim: Victim) { setHeld(true, victim.number) }

    /// Allows victims that were held to be returned again.
    package mutating func release(_ victims: [Victim]) {
        for victim in victims { setHeld(false, victim.number) }
    }

    private func members(
        of unit: Unit, _ number: Int, _ part: EvictionVictim.Part, _ quota: Int?, _ limit: Int, at date: Date
    ) -> (members: [Member], examined: Int) {
        var members: [Member] = []
        var examined = 0
        func add(_ key: CacheKey) {
            examined += 1
            guard let place = places[key], place.unit == number, quota == nil || place.quota == quota else { return }
            let isIncluded = part == .whole || (part == .body ? place.bytes.body > 0 : place.bytes.body == 0)
            if isIncluded {
                // The body of a presentation consists of whole parts.
                members.append(
                    Member(
                        key: key, bytes: place.bytes, part: key == unit.key ? part : .whole,
                        stop: place.stop < 0 ? nil : place.stop))
            }
        }
        // The first parts are played first, so they are evicted last, unless the presentation is being played now.
        let isForward = isPlaying(unit, at: date)
        let count = unit.parts.count
        var place = 0
        // A presentation may have 100,000 parts, and may be a victim repeatedly.
        while place < count, members.count < limit {
            add(unit.parts[isForward ? place : count - 1 - place])
            place += 1
        }
        if members.count < limit { add(unit.key) }
        return (members, examined)
    }

    // MARK: - Units

    private mutating func unit(of key: CacheKey, partOf whole: CacheKey?) -> Int {
        if let place = places[key] {
            guard let whole, whole != key, units[place.unit]?.key != whole else { return place.unit }
            let target = unit(ofPresentation: whole)
            if target != place.unit { move(place.unit, key, to: target) }
            return target
        }
        if let whole, whole != key { return unit(ofPresentation: whole) }
        if let number = presentations.removeValue(forKey: key) { return number }
        return add(Unit(key: key))
    }

    private mutating func unit(ofPresentation key: CacheKey) -> Int {
        if let number = places[key]?.unit ?? presentations[key] { return number }
        let number = add(Unit(key: key))
        presentations[key] = number
        return number
    }

    private mutating func add(_ unit: Unit) -> Int {
        if let number = free.popLast() {
            units[number] = unit
            return number
        }
        units.append(unit)
        return units.count - 1
    }

    /// Moves a resource and all its own parts to another presentation.
    private mutating func move(_ previous: Int, _ key: CacheKey, to target: Int) {
        let keys = units[previous]?.key == key ? (units[previous]?.parts ?? []) + [key] : [key]
        for key in keys {
            guard let place = places[key], place.unit == previous else { continue }
            remove(key)
            var moved = place
            moved.unit = target
            places[key] = moved
            count(key, in: target, by: 1)
            add(place.bytes, to: target, insteadOf: EvictableBytes(), quota: place.quota)
        }
    }

    private mutating func count(_ key: CacheKey, in number: Int, by change: Int) {
        guard units[number] != nil, units[number]?.key != key else { return }
        units[number]?.partCount += change
        if change > 0 { units[number]?.parts.append(key) }
        // The last parts are usually evicted first. Parts that were removed are not examined again.
        while let last = units[number]?.parts.last, places[last]?.unit != number, change < 0 {
            units[number]?.parts.removeLast()
        }
        // The unit is not copied as a whole, because that would also copy its list of parts.
        guard let (all, present) = units[number].map({ ($0.parts.count, $0.partCount) }), all > 16, all > 2 * present
        else { return }
        units[number]?.parts.removeAll { places[$0]?.unit != number }
    }

    private func bytes(_ storedRanges: ByteRangeSet, of key: CacheKey, in number: Int, stop: Int64) -> EvictableBytes {
        // A resource without bytes still has a row in the catalog. The size is limited, in case the recorded
        // ranges are larger than any disk.
        let total = min(max(1, storedRanges.byteCount), Self.largest)
        guard let unit = units[number], unit.key != key else {
            let bytes = EvictableParts(stop: stop < 0 ? nil : stop).count(storedRanges)
            if bytes.total == 0 { return EvictableBytes(start: 1) }
            return EvictableBytes(start: bytes.start, body: min(bytes.body, Self.largest))
        }
        let isEarly =
            unit.parts.prefix(Self.startParts.count).contains(key)
            || (places[key] == nil && unit.parts.count < Self.startParts.count)
        let others = unit.bytes.start - (places[key]?.bytes.start ?? 0)
        let isStart = isEarly && others + total <= Self.startParts.bytes
        return isStart ? EvictableBytes(start: total) : EvictableBytes(body: total)
    }

    private mutating func add(
        _ bytes: EvictableBytes, to number: Int, insteadOf previous: EvictableBytes, quota: Int?
    ) {
        guard let unit = units[number] else { return }
        let sum = unit.bytes + bytes - previous
        units[number]?.bytes = sum
        strategy.update(number, fingerprint: Self.fingerprint(unit.key), sum)
        if let quota { add(bytes, to: number, insteadOf: previous, ofQuota: quota) }
    }

    private mutating func add(
        _ bytes: EvictableBytes, to number: Int, insteadOf previous: EvictableBytes, ofQuota quota: Int
    ) {
        guard let unit = units[number] else { return }
        let sum = (unit.ofQuotas[quota] ?? EvictableBytes()) + bytes - previous
        units[number]?.ofQuotas[quota] = sum.total > 0 ? sum : nil
        quotas[quota].byteCount += bytes.total - previous.total
        quotas[quota].strategy.update(number, fingerprint: Self.fingerprint(unit.key), sum)
    }

    private mutating func nextInStrategy(_ isLastResort: Bool, _ quota: Int?) -> EvictionVictim? {
        guard let quota else { return strategy.nextVictim(isLastResort: isLastResort) }
        return quotas[quota].strategy.nextVictim(isLastResort: isLastResort)
    }

    /// Reports a change of a unit to all strategies that contain the unit.
    private mutating func report(_ number: Int, _ change: (inout any EvictionStrategy) -> Void) {
        change(&strategy)
        for quota in units[number]?.ofQuotas.keys.sorted() ?? [] { change(&quotas[quota].strategy) }
    }

    /// Holds or releases a number in all strategies, even if its unit was removed or moved to a quota in the meantime.
    private mutating func setHeld(_ isHeld: Bool, _ number: Int) {
        strategy.setHeld(isHeld, number)
        for quota in quotas.indices { quotas[quota].strategy.setHeld(isHeld, number) }
    }

    private static func fingerprint(_ key: CacheKey) -> UInt64 {
        // Any part of the key works, because it is a hash.
        UInt64(key.hash.prefix(16), radix: 16) ?? 0
    }
}

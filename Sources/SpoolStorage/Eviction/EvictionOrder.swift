package import ByteRanges
package import Foundation

/// What may be evicted, and what of it goes next: tells a strategy, which knows numbers, what becomes of resources.
///
/// A presentation counts as one with its parts. A value: no I/O, no clock.
package struct EvictionOrder: Sendable {
    /// What goes next.
    package struct Victim: Sendable {
        /// Names it to this order.
        var number: Int
        /// The resources that may go, in this order; of a presentation some at a time.
        package var members: [Member]
    }

    /// A resource of a victim.
    package struct Member: Sendable {
        package var key: CacheKey
        /// What it has.
        package var bytes: EvictableBytes
        /// What of it may go.
        package var part: EvictionVictim.Part
        /// Where its last play stopped.
        package var stop: Int64?
    }

    /// What is evicted as one: a resource, or a presentation with its parts.
    private struct Unit: Sendable {
        var key: CacheKey
        var bytes = EvictableBytes()
        /// In the order in which they came; also some that have gone since.
        var parts: [CacheKey] = []
        /// How many of them have bytes.
        var partCount = 0
        /// Seconds since 1970.
        var lastUse: Double?
        /// Of each quota that its members count to, their bytes.
        var ofQuotas: [Int: EvictableBytes] = [:]
    }

    private struct Place: Sendable {
        var unit: Int
        var bytes: EvictableBytes
        var stop: Int64 = -1
        /// The quota that it counts to.
        var quota: Int?
    }

    /// Which quota a resource counts to.
    package enum QuotaChange: Sendable {
        /// The same as before.
        case none
        /// The one of this number; nil: none.
        case to(Int?)
    }

    /// Uses that lie less than this apart are one sitting.
    package static let sittingGap: TimeInterval = 600
    /// A presentation that was used less than this ago is being played.
    private static let playingTime: TimeInterval = 60
    /// How many of a presentation's parts, and bytes of them, are its start.
    private static let startParts = (count: 8, bytes: Int64(2 << 20))

    /// The most bytes that a resource counts for: sums of millions do not overflow.
    private static let largest: Int64 = 1 << 40

    private var strategy: any EvictionStrategy
    /// Of each quota: what counts to it, in an order of its own.
    private var quotas: [(strategy: any EvictionStrategy, byteCount: Int64)]
    private var units: [Unit?] = []
    private var free: [Int] = []
    private var places: [CacheKey: Place] = [:]
    /// The units of presentations that are not stored themselves.
    private var presentations: [CacheKey: Int] = [:]
    /// The number of resources that were examined for victims.
    package private(set) var examinedCount = 0

    /// An order in which nothing is.
    ///
    /// - Parameters:
    ///   - makeStrategy: Makes what decides.
    ///   - quotaCount: How many quotas there are.
    package init(_ makeStrategy: () -> any EvictionStrategy, quotaCount: Int = 0) {
        strategy = makeStrategy()
        quotas = (0..<quotaCount).map { _ in (makeStrategy(), 0) }
    }

    /// How many resources are known.
    package var count: Int { places.count }

    // MARK: - What comes about

    /// These bytes of a resource are kept; also if there are none, it takes a place.
    ///
    /// - Parameters:
    ///   - date: When that came about; where it is new, the time of its first use.
    ///   - quota: Whether it counts to another quota from now on.
    package mutating func update(
        _ key: CacheKey, partOf whole: CacheKey?, _ landed: ByteRangeSet, at date: Date, quota: QuotaChange = .none
    ) {
        let number = unit(of: key, partOf: whole)
        let before = places[key]
        var place = before ?? Place(unit: number, bytes: EvictableBytes())
        let former = place.bytes
        if case .to(let quota) = quota, quota != place.quota {
            if let counted = place.quota { add(EvictableBytes(), to: number, insteadOf: former, ofQuota: counted) }
            place.quota = quota
            if let quota { add(former, to: number, insteadOf: EvictableBytes(), ofQuota: quota) }
        }
        place.bytes = bytes(landed, of: key, in: number, stop: place.stop)
        places[key] = place
        if before == nil { count(key, in: number, by: 1) }
        if units[number]?.lastUse == nil { units[number]?.lastUse = date.timeIntervalSince1970 }
        add(place.bytes, to: number, insteadOf: former, quota: place.quota)
    }

    /// Whether a resource has a place.
    package func contains(_ key: CacheKey) -> Bool { places[key] != nil }

    /// The same of a resource that stays a part of what it was.
    ///
    /// - Returns: False where it has no place yet: nothing has changed.
    package mutating func update(_ key: CacheKey, _ landed: ByteRangeSet, at date: Date) -> Bool {
        guard places[key] != nil else { return false }
        update(key, partOf: nil, landed, at: date)
        return true
    }

    /// Whether a resource counts as a part of a presentation, or that as a part of what the resource is one of.
    package func isPart(_ key: CacheKey, of whole: CacheKey) -> Bool {
        guard let unit = places[key]?.unit else { return false }
        return unit == places[whole]?.unit ?? presentations[whole]
    }

    /// Nothing of a resource is kept, or it is not to go.
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

    /// A resource is used.
    ///
    /// - Parameter isEnd: It was used until now: no sitting begins by that.
    package mutating func use(_ key: CacheKey, partOf whole: CacheKey? = nil, at date: Date, isEnd: Bool = false) {
        let number = places[key]?.unit ?? whole.flatMap { places[$0]?.unit ?? presentations[$0] }
        guard let number, let last = units[number]?.lastUse else { return }
        let seconds = date.timeIntervalSince1970
        units[number]?.lastUse = seconds
        let isNewSitting = !isEnd && seconds - last > Self.sittingGap
        tell(number) { $0.use(number, isNewSitting: isNewSitting) }
    }

    /// What was noted of a resource before.
    package mutating func restore(_ history: PlayHistory, of key: CacheKey) {
        guard let place = places[key], units[place.unit]?.key == key else { return }
        for _ in 0..<min(3, history.sittings) { tell(place.unit) { $0.use(place.unit, isNewSitting: true) } }
        if history.isSpent { spend(key) }
    }

    /// A play of a resource has stopped at `stop`; nil: at its end. It counts when its bytes are told next.
    package mutating func setStop(_ stop: Int64?, of key: CacheKey) { places[key]?.stop = stop ?? -1 }

    /// A resource was heard to its end, and is played once.
    package mutating func spend(_ key: CacheKey) {
        if let place = places[key] { tell(place.unit) { $0.spend(place.unit) } }
    }

    // MARK: - What goes

    /// Bytes that count to a quota.
    package func byteCount(ofQuota quota: Int) -> Int64 { quotas[quota].byteCount }

    /// What is to go next; it stays first until its bytes have gone, or it is held.
    ///
    /// - Parameter quota: Of what counts to one; nil: of all.
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

    /// Whether a victim is a presentation that was used so lately that it is being played: between two of its parts
    /// nobody reads it.
    package func isPlaying(_ victim: Victim, at date: Date) -> Bool {
        units[victim.number].map { isPlaying($0, at: date) } ?? false
    }

    private func isPlaying(_ unit: Unit, at date: Date) -> Bool {
        guard unit.partCount > 0, let last = unit.lastUse else { return false }
        // Times of use may be a little ahead of the clock.
        return abs(date.timeIntervalSince1970 - last) < Self.playingTime
    }

    /// Passes over a victim until it is released.
    package mutating func hold(_ victim: Victim) { setHeld(true, victim.number) }

    /// Victims that were held may be named again.
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
            let isMeant = part == .whole || (part == .body ? place.bytes.body > 0 : place.bytes.body == 0)
            if isMeant {
                // A presentation's body is some of its parts, whole.
                members.append(
                    Member(
                        key: key, bytes: place.bytes, part: key == unit.key ? part : .whole,
                        stop: place.stop < 0 ? nil : place.stop))
            }
        }
        // The first parts are played first, so they are evicted last, unless they are being played now.
        let isForward = isPlaying(unit, at: date)
        let count = unit.parts.count
        var place = 0
        // A presentation may have 100,000 parts, and is a victim again and again.
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

    /// A resource comes to another presentation, with all that it is a presentation of.
    private mutating func move(_ former: Int, _ key: CacheKey, to target: Int) {
        let keys = units[former]?.key == key ? (units[former]?.parts ?? []) + [key] : [key]
        for key in keys {
            guard let place = places[key], place.unit == former else { continue }
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
        // The unit itself is not copied, because its list would then be copied, too.
        guard let (all, present) = units[number].map({ ($0.parts.count, $0.partCount) }), all > 16, all > 2 * present
        else { return }
        units[number]?.parts.removeAll { places[$0]?.unit != number }
    }

    private func bytes(_ landed: ByteRangeSet, of key: CacheKey, in number: Int, stop: Int64) -> EvictableBytes {
        // A resource of no bytes has a row in the catalog; of one that is larger than any disk nobody knows more.
        let total = min(max(1, landed.byteCount), Self.largest)
        guard let unit = units[number], unit.key != key else {
            let bytes = EvictableParts(stop: stop < 0 ? nil : stop).count(landed)
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
        _ bytes: EvictableBytes, to number: Int, insteadOf former: EvictableBytes, quota: Int?
    ) {
        guard let unit = units[number] else { return }
        let sum = unit.bytes + bytes - former
        units[number]?.bytes = sum
        strategy.update(number, fingerprint: Self.fingerprint(unit.key), sum)
        if let quota { add(bytes, to: number, insteadOf: former, ofQuota: quota) }
    }

    private mutating func add(
        _ bytes: EvictableBytes, to number: Int, insteadOf former: EvictableBytes, ofQuota quota: Int
    ) {
        guard let unit = units[number] else { return }
        let sum = (unit.ofQuotas[quota] ?? EvictableBytes()) + bytes - former
        units[number]?.ofQuotas[quota] = sum.total > 0 ? sum : nil
        quotas[quota].byteCount += bytes.total - former.total
        quotas[quota].strategy.update(number, fingerprint: Self.fingerprint(unit.key), sum)
    }

    private mutating func nextInStrategy(_ isLastResort: Bool, _ quota: Int?) -> EvictionVictim? {
        guard let quota else { return strategy.nextVictim(isLastResort: isLastResort) }
        return quotas[quota].strategy.nextVictim(isLastResort: isLastResort)
    }

    /// Tells those who decide about a unit.
    private mutating func tell(_ number: Int, _ change: (inout any EvictionStrategy) -> Void) {
        change(&strategy)
        for quota in units[number]?.ofQuotas.keys.sorted() ?? [] { change(&quotas[quota].strategy) }
    }

    /// Holds a number, or lets it go, everywhere: also where its unit has gone, or came to a quota, meanwhile.
    private mutating func setHeld(_ isHeld: Bool, _ number: Int) {
        strategy.setHeld(isHeld, number)
        for quota in quotas.indices { quotas[quota].strategy.setHeld(isHeld, number) }
    }

    private static func fingerprint(_ key: CacheKey) -> UInt64 {
        // The key is a hash: any part of it tells as much.
        UInt64(key.hash.prefix(16), radix: 16) ?? 0
    }
}

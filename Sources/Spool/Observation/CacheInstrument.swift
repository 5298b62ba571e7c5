/// Something that is told what a cache does at the moment when it does it: counts for monitoring (`metrics`, with the
/// package's trait `Metrics`), or marks in Xcode's Instruments (`signposts`, on Apple's platforms).
///
/// ```swift
/// configuration.instruments = [.metrics()]
/// ```
///
/// A cache without instruments spends nothing on them. What an app shows is ``MediaResource/states`` and
/// ``MediaCache/events()``.
public struct CacheInstrument: Sendable {
    /// Told on whatever thread it happens, in no lock of the cache; it must be quick.
    let note: @Sendable (CacheMoment) -> Void

    init(_ note: @escaping @Sendable (CacheMoment) -> Void) { self.note = note }
}

/// The instruments of a cache.
struct CacheInstruments: Sendable {
    private let all: [CacheInstrument]

    init(_ all: [CacheInstrument] = []) { self.all = all }

    /// Whether nobody is told.
    var isEmpty: Bool { all.isEmpty }

    /// Tells all of them; what is told is made only if there are any.
    func note(_ moment: @autoclosure () -> CacheMoment) {
        guard !all.isEmpty else { return }
        let moment = moment()
        for instrument in all { instrument.note(moment) }
    }
}

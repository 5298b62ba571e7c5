/// Decides which resources go first: a value that is told what comes about, and asked what may go. No I/O, no clock.
///
/// Resources are numbers from 0 that whoever keeps it gives out, and gives out again once they have gone. Each call costs
/// a bounded number of steps, amortised over all calls. A strategy never names a resource that is held.
package protocol EvictionStrategy: Sendable {
    /// So many bytes of a resource are kept from now on; the first time, it is new. None at all: it has gone.
    ///
    /// - Parameter fingerprint: Tells the resource from others also after it has gone.
    mutating func update(_ resource: Int, fingerprint: UInt64, _ bytes: EvictableBytes)
    /// It is used.
    ///
    /// - Parameter isNewSitting: Whether somebody sits down to it anew: what goes on, as a film whose parts are read one by
    ///   one, is one sitting.
    mutating func use(_ resource: Int, isNewSitting: Bool)
    /// Whether it is not to be named, as what is being read. Let go of, it comes behind the others.
    mutating func setHeld(_ isHeld: Bool, _ resource: Int)
    /// It has been heard, and will not be again, as somebody said: until it is used it goes before all others.
    mutating func spend(_ resource: Int)
    /// What is to go next, until ``update(_:fingerprint:_:)`` says that it has; nil: nothing.
    ///
    /// - Parameter isLastResort: Whether what readers have left behind has gone, and nothing is to be spared.
    mutating func nextVictim(isLastResort: Bool) -> EvictionVictim?
}

/// How many bytes of a resource are kept, by how much they are worth to its next play.
package struct EvictableBytes: Hashable, Sendable {
    /// Those with which a play begins, or goes on: see ``EvictableParts``.
    package var start: Int64
    /// All others.
    package var body: Int64

    package init(start: Int64 = 0, body: Int64 = 0) {
        self.start = start
        self.body = body
    }

    package var total: Int64 { start + body }

    package static func + (a: EvictableBytes, b: EvictableBytes) -> EvictableBytes {
        EvictableBytes(start: a.start + b.start, body: a.body + b.body)
    }

    package static func - (a: EvictableBytes, b: EvictableBytes) -> EvictableBytes {
        EvictableBytes(start: a.start - b.start, body: a.body - b.body)
    }

    /// Those of a part.
    package func count(of part: EvictionVictim.Part) -> Int64 {
        switch part {
        case .body: body
        case .start: start
        case .whole: total
        }
    }
}

/// What goes next: a part of a resource, or as much of it as is needed.
package struct EvictionVictim: Hashable, Sendable {
    package enum Part: Sendable {
        /// All but its start.
        case body
        /// Its start, when nothing else is left of it.
        case start
        /// Its body, then its start.
        case whole
    }

    package var resource: Int
    package var part: Part

    package init(_ resource: Int, _ part: Part) {
        self.resource = resource
        self.part = part
    }
}

/// Room for bytes that are to land: so much of the capacity, or of the memory for what is not kept, set aside.
///
/// What is not used goes back when it ends. It says where bytes may land now, not that they will.
package struct Room: ~Copyable, Sendable {
    enum Place: Sendable {
        case disk, memory
        /// There is none now, and nobody waits for the bytes.
        case none
        /// The generation is no longer the cache's.
        case retired
    }

    /// The bytes that it was made for; it may end before what was asked for.
    package let range: Range<Int64>
    let place: Place
    var reservation: Reservation

    init(_ range: Range<Int64>, _ place: Place, _ reservation: consuming Reservation = Reservation()) {
        self.range = range
        self.place = place
        self.reservation = reservation
    }
}

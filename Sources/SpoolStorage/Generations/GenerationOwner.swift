/// What a generation asks of its store: a value's worth of calls, so that neither knows the other's parts.
///
/// None is called under a lock of the generation.
protocol GenerationOwner: AnyObject, Sendable {
    /// Something of the generation has changed that the catalog does not know.
    func noteChange(of generation: Generation)

    /// A block of the generation is complete, which the catalog does not know.
    func noteCompletion(of generation: Generation)

    /// A transfer has ended: nobody waits just now for what could be done ahead.
    func noteLandingEnded(of generation: Generation)

    /// The generation's first block has landed: it may take its place.
    func noteProof(of generation: Generation)

    /// Sets capacity aside, and claims it for a row, evicting what is needed; full if it does not fit although all that may
    /// go has gone. Holds no thread while it waits for its turn.
    func makeRoom(_ count: Int64, rowBytes: Int64) async -> ReservationResult

    /// Has users of any generation give up memory that no reader is near.
    ///
    /// - Returns: Whether any was given up.
    func makeMemory(_ count: Int64) -> Bool

    /// Those who have the generation open.
    func users(of generation: Generation) -> [any GenerationUser]

    /// One more lease on a generation that is open; nil if it has gone.
    func extend(_ generation: Generation) -> Lease?

    /// Tells what happened.
    func report(_ event: StoreEvent)
}

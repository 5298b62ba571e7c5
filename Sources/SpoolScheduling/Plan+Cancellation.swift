/// The cancellation of transfers whose bytes can be requested again later, or are no longer wanted.
extension Plan {
    /// Cancels all transfers if no reader is open. None of their bytes may be stored anymore.
    mutating func discardTransfers() -> [Action] {
        guard readers.states.isEmpty else { return [] }
        var actions: [Action] = []
        for id in transfers.ids { discard(id, &actions) }
        return actions
    }

    /// Cancels a transfer whose bytes can be requested again later, because another request needs its connection.
    /// Returns whether it cancelled one.
    ///
    /// Later requests for the resource are longer, because each request may have to wait for its turn.
    ///
    /// - Parameters:
    ///   - only: The only transfer that may be cancelled, or `nil` for any transfer.
    ///   - evenIfFlowing: Whether to also cancel a transfer that is not paused, or for whose bytes a player waits. Such
    ///     a transfer must have stored bytes. Its remaining bytes are requested again immediately.
    mutating func cancelForTurn(_ only: TransferID?, evenIfFlowing: Bool) -> (Bool, [Action]) {
        guard rangeSupport == .supported else { return (false, []) }
        for id in only.map({ [$0] }) ?? transfers.ids {
            guard let transfer = transfers[id], transfer.isLive, !transfer.isSequential, !transfer.isValidation
            else { continue }
            let isPaused = transfer.flow == .held && !isAwaited(transfer, by: .playback)
            guard isPaused || evenIfFlowing && transfer.hasStored else { continue }
            var actions: [Action] = []
            cancel(id, &actions)
            transfers.takesTurns = true
            return (true, actions + (evenIfFlowing ? settle() : []))
        }
        return (false, [])
    }
}

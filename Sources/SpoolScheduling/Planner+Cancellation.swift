/// The cancellation of transfers that readers do not need now.
extension Planner {
    /// Cancels all transfers if no reader is open. None of their bytes may be stored anymore.
    package mutating func discardTransfers() -> [Action] {
        guard plan.readers.states.isEmpty else { return [] }
        var actions: [Action] = []
        for id in plan.transfers.ids { plan.discard(id, &actions) }
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
    package mutating func cancelForTurn(_ only: TransferID?, evenIfFlowing: Bool) -> (Bool, [Action]) {
        guard rangeSupport == .supported else { return (false, []) }
        for id in only.map({ [$0] }) ?? plan.transfers.ids {
            guard let transfer = plan.transfers[id], transfer.isLive, !transfer.isSequential, !transfer.isValidation
            else { continue }
            let isPaused = transfer.flow == .held && !plan.isAwaited(transfer, by: .playback)
            guard isPaused || evenIfFlowing && transfer.hasStored else { continue }
            var actions: [Action] = []
            plan.cancel(id, &actions)
            plan.transfers.takesTurns = true
            return (true, actions + (evenIfFlowing ? plan.settle() : []))
        }
        return (false, [])
    }
}

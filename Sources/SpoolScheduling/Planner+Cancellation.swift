/// The cancellation of transfers that readers do not need now.
extension Planner {
    /// Cancels all transfers if no reader is open. None of their bytes may be stored anymore.
    package mutating func discardTransfers() -> [Action] {
        guard plan.readers.states.isEmpty else { return [] }
        var actions: [Action] = []
        for id in plan.transfers.ids { plan.discard(id, &actions) }
        return actions
    }

    /// Cancels a paused transfer whose bytes can be requested again later. Returns whether it cancelled one.
    ///
    /// - Parameter only: The only transfer that may be cancelled, or `nil` for any paused transfer.
    package mutating func cancelPausedTransfer(_ only: TransferID?) -> (Bool, [Action]) {
        guard rangeSupport == .supported else { return (false, []) }
        for id in only.map({ [$0] }) ?? plan.transfers.ids {
            guard let transfer = plan.transfers[id], transfer.isLive, transfer.flow == .held, !transfer.isSequential,
                !transfer.isValidation, !plan.isAwaited(transfer, by: .playback)
            else { continue }
            var actions: [Action] = []
            plan.cancel(id, &actions)
            return (true, actions)
        }
        return (false, [])
    }
}

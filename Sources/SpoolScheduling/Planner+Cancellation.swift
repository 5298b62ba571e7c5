/// The cancellation of paused transfers.
extension Planner {
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

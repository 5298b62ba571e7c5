extension OpenResource {
    /// Its readers, and its requests that are under way.
    var activity: CacheActivity {
        scheduler.look { state in
            let transfers = state.machine.plan.transfers.states.map {
                CacheActivity.RunningTransfer(
                    address: address, start: $0.start, position: $0.position, end: $0.end ?? $0.askedEnd)
            }
            return CacheActivity(readers: state.readers.count, transfers: transfers)
        }
    }
}

#if Proxy
/// The parts of the live page that run for as long as the server does.
struct LivePage: Sendable {
    let feed: DashboardFeed
    let preloads: OperatorPreloads

    /// Ends all streams of events and all preloads.
    func end() {
        feed.end()
        preloads.end()
    }
}
#endif

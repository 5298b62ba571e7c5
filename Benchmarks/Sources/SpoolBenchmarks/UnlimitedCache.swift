import Spool

extension MediaCache.Configuration {
    /// A configuration without a capacity, so that eviction does not affect a measurement.
    static var unlimited: MediaCache.Configuration {
        var configuration = MediaCache.Configuration()
        configuration.capacity = .unlimited
        return configuration
    }
}

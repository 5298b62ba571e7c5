import Spool

extension MediaCache.Configuration {
    /// What is measured is not what a limit evicts.
    static var unlimited: MediaCache.Configuration {
        var configuration = MediaCache.Configuration()
        configuration.capacity = .unlimited
        return configuration
    }
}

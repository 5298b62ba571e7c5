import Foundation
import Logging

extension CacheServices {
    /// Opens a cache directory and puts together what its resources share; blocks.
    static func open(
        directory url: URL, upstream: any Upstream, configuration: MediaCache.Configuration,
        fileSystem: any FileSystem, time: CacheClock, executor: BlockingExecutor, resources: OpenResources
    ) throws -> (CacheServices, [String]) {
        let directory = try CacheDirectory(
            opening: url.path, fileSystem: fileSystem, now: time.now(), random: time.random)
        let catalog = directory.catalog
        if let wanted = configuration.capacity {
            guard wanted >= 0 else {
                throw CacheError(.invalidArgument, "a capacity of \(wanted) bytes is not possible")
            }
            try catalog.setCapacity(wanted)
        }
        let capacity = Capacity(limit: try catalog.capacity(), used: try catalog.storedBytes())
        let events = EventHub(logger: configuration.logger)
        let flusher = Flusher(catalog: catalog, executor: executor, time: time) { error in
            events.logger.warning("the catalog could not be written: \(error)")
        }
        let evictor = Evictor(
            directory: directory, capacity: capacity, policy: configuration.eviction, resources: resources,
            flusher: flusher, events: events)
        let services = CacheServices(
            configuration: configuration, upstream: upstream, directory: directory, catalog: catalog,
            executor: executor, capacity: capacity, evictor: evictor, flusher: flusher, events: events, time: time)
        return (services, notices(of: directory.recovery))
    }

    private static func notices(of recovery: CacheDirectory.Recovery) -> [String] {
        var notices: [String] = []
        if let path = recovery.damagedCatalog {
            notices.append("the catalog was damaged and set aside as \(path); the cache goes on empty")
        }
        return notices
    }
}

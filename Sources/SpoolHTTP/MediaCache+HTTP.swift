public import Foundation
public import Spool

extension MediaCache {
    /// A cache in `directory` that fetches over HTTP by the platform's own ways; see ``/SpoolHTTP/HTTPUpstream``.
    ///
    /// The directory is opened, or begun, when it is first needed. That can't fail: where it can't be used, media plays
    /// without being kept, and an event says why.
    ///
    /// - Parameters:
    ///   - directory: Where bytes are kept.
    ///   - capacity: The most to keep; nil: what the configuration says.
    ///   - configuration: Everything else.
    public convenience init(
        directory: URL, capacity: CacheCapacity? = nil, configuration: Configuration = Configuration()
    ) {
        var configuration = configuration
        configuration.capacity = capacity ?? configuration.capacity
        self.init(directory: directory, upstream: HTTPUpstream.standard(), configuration: configuration)
    }

    /// A cache in memory that fetches over HTTP by the platform's own ways; see ``inMemory(upstream:configuration:clock:now:)``.
    public static func inMemory(configuration: Configuration = Configuration()) -> MediaCache {
        inMemory(upstream: HTTPUpstream.standard(), configuration: configuration)
    }
}

import SpoolAVFoundation

/// The capacity that the user has chosen, in gigabytes. 0 means no limit.
///
/// The app saves the capacity, because the cache needs it when it is created at launch.
enum Capacity {
    static let key = "capacity"
    static let standard = 2
    static let choices = [1, 2, 5, 10, 50, 0]

    static var saved: CacheCapacity {
        of(gigabytes: UserDefaults.standard.object(forKey: key) as? Int ?? standard)
    }

    static func of(gigabytes: Int) -> CacheCapacity {
        gigabytes > 0 ? .bytes(Int64(gigabytes) * 1_000_000_000) : .unlimited
    }

    static func name(ofGigabytes gigabytes: Int) -> String { gigabytes > 0 ? "\(gigabytes) GB" : "No limit" }
}

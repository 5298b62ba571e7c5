import ArgumentParser
import Spool

/// How much the cache may hold.
struct RoomOptions: ParsableArguments {
    /// What `--capacity` takes: a size, or `none` for no limit.
    enum Capacity: Hashable, Sendable, ExpressibleByArgument {
        case bytes(Int64)
        case none

        init?(argument: String) {
            if argument.lowercased() == "none" {
                self = .none
            } else {
                guard let size = ByteCount(argument: argument) else { return nil }
                self = .bytes(size.bytes)
            }
        }

        /// As the library has it.
        var inLibrary: CacheCapacity { if case .bytes(let bytes) = self { .bytes(bytes) } else { .unlimited } }
    }

    @Option(
        help: ArgumentHelp(
            "The most that the cache may keep, such as 500MB or 2GiB, or none; holds for the directory from now on.",
            valueName: "size"))
    var capacity: Capacity?
}

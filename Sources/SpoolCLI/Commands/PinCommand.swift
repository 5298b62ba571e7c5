import ArgumentParser
import Spool

/// `spool pin`: keep a resource, whatever room others need.
struct PinCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pin", abstract: "Keep a resource from eviction.")

    @OptionGroup var options: CacheOptions
    @Argument(help: "The address of the media.") var url: MediaAddress

    func run() async throws { try await options.setPinned(true, url) }
}

/// `spool unpin`: let a resource go when room is needed.
struct UnpinCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unpin", abstract: "Let a pinned resource be evicted again.")

    @OptionGroup var options: CacheOptions
    @Argument(help: "The address of the media.") var url: MediaAddress

    func run() async throws { try await options.setPinned(false, url) }
}

extension CacheOptions {
    fileprivate func setPinned(_ isPinned: Bool, _ address: MediaAddress) async throws {
        let media = try await withExistingCache { cache in
            guard try await cache.contents(of: address.key) != nil else { throw address.notStored }
            try await cache.setPinned(isPinned, key: address.key)
            return try await cache.contents(of: address.key)
        }
        guard case let media?? = media else { throw address.notStored }
        if json { try Output.json(MediaReport(media)) }
    }
}

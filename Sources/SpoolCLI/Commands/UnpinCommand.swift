import ArgumentParser

/// `spool unpin`: let a resource go when room is needed.
struct UnpinCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unpin", abstract: "Let a pinned resource be evicted again.")

    @OptionGroup var options: CacheOptions
    @Argument(help: "The URL of the media.") var url: MediaURL

    func run() async throws { try await options.setPinned(false, url) }
}

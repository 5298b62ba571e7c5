import ArgumentParser
import Spool

/// `spool pin`: keep a resource, whatever room others need.
struct PinCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pin", abstract: "Keep a resource from eviction.")

    @OptionGroup var options: CacheOptions
    @Argument(help: "The URL of the media.") var url: MediaURL

    func run() async throws { try await options.setPinned(true, url) }
}

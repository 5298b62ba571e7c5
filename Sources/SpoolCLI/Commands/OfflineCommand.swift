import ArgumentParser

/// `spool offline`: named sets of media that are kept for play without a network.
struct OfflineCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "offline", abstract: "Keep media for play without a network, in named sets.",
        discussion: "What a set has is pinned, and stays until the set is removed.",
        subcommands: [OfflineAddCommand.self, OfflineListCommand.self, OfflineRemoveCommand.self])

    @OptionGroup var options: CacheOptions
}

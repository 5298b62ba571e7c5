import ArgumentParser

/// The command line of the cache.
@main
struct SpoolCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "spool")
}

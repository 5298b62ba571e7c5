import ArgumentParser
import Foundation
import SpoolProxy

/// `spool url`: the address of a media file at the server, to hand to a player.
struct URLCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "url", abstract: "Print the address at which “spool serve” has a media file.")

    @Argument(help: "The URL of the media.") var url: MediaURL
    @Option(help: ArgumentHelp("Where the server listens.", valueName: "host:port"))
    var listen = ListenAddress.standard

    func run() throws {
        let host = listen.host.contains(":") ? "[\(listen.host)]" : listen.host
        do {
            try Output.line("http://\(host):\(listen.port)" + ForwardAddress.requestTarget(for: try OriginURL(url.url)))
        } catch let error as AddressError {
            throw CommandFailure(.usage, "the URL can't be asked through a server: \(error)")
        }
    }
}

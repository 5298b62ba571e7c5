import ArgumentParser
import Foundation

/// The URL of media at an origin: `http` or `https`, with a host.
struct MediaURL: Hashable, Sendable, ExpressibleByArgument {
    var url: URL

    init?(argument: String) {
        guard let url = URL(string: argument), ["http", "https"].contains(url.scheme?.lowercased()),
            !(url.host ?? "").isEmpty
        else { return nil }
        self.url = url
    }
}

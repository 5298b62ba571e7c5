import ArgumentParser
import Foundation

/// The address of media at an origin: `http` or `https`, with a host.
struct MediaAddress: Hashable, Sendable, ExpressibleByArgument {
    var url: URL

    init?(argument: String) {
        guard let url = URL(string: argument), ["http", "https"].contains(url.scheme?.lowercased()),
            !(url.host ?? "").isEmpty
        else { return nil }
        self.url = url
    }
}

import ArgumentParser
import Foundation

/// A URL of any kind, or a file on this machine, to play.
struct PlayableURL: Hashable, Sendable, ExpressibleByArgument {
    var url: URL

    /// Reads a URL if the text begins with a scheme, else a path.
    init?(argument: String) {
        guard !argument.isEmpty else { return nil }
        if let colon = argument.firstIndex(of: ":"), argument[colon...].hasPrefix("://") {
            guard let url = URL(string: argument) else { return nil }
            if ["http", "https"].contains(url.scheme?.lowercased()), (url.host ?? "").isEmpty { return nil }
            self.url = url
        } else {
            url = URL(fileURLWithPath: argument)
        }
    }
}

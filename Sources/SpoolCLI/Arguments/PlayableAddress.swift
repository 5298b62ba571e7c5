import ArgumentParser
import Foundation

/// What to play: an address of any kind, or a file on this machine.
struct PlayableAddress: Hashable, Sendable, ExpressibleByArgument {
    var url: URL

    /// Reads an address if the text begins with a scheme, else a path.
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

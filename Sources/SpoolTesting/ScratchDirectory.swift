import Foundation

/// An empty folder in the system's temporary one, gone when the test lets go of it.
package final class ScratchDirectory: Sendable {
    package let path: String

    package init() throws {
        path = NSTemporaryDirectory() + "spool-test-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// The path of a file in it.
    package func file(_ name: String) -> String { path + "/" + name }

    /// The names in it, sorted.
    package var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted() }
}

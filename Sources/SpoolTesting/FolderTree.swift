import Foundation

/// What is in a folder and the folders in it, also while others change them.
///
/// `FileManager`'s enumerator ends early, and says nothing, where a folder goes away under it: files that were there all
/// the time are missing then. This one passes over that folder alone.
package enum FolderTree {
    /// The paths of everything below `path`, folders too, relative to it and in order.
    package static func paths(under path: String) -> [String] {
        // A folder that is gone, or no folder, holds nothing.
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        return names.sorted().flatMap { name in
            [name] + paths(under: "\(path)/\(name)").map { "\(name)/\($0)" }
        }
    }
}

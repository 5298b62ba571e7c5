/// The priority of a reader: playback, or a preload that stores bytes for later.
package enum Priority: Int, Comparable, Sendable {
    case preload, playback
    package static func < (a: Priority, b: Priority) -> Bool { a.rawValue < b.rawValue }
}

/// The priority of a reader: bytes for a player that waits, or bytes to store for later.
package enum Priority: Int, Comparable, Sendable {
    case preload, playback
    package static func < (a: Priority, b: Priority) -> Bool { a.rawValue < b.rawValue }
}

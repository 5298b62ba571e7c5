/// Which readers go first: players that wait, or bytes landed for later.
package enum Priority: Int, Comparable, Sendable {
    case preload, playback
    package static func < (a: Priority, b: Priority) -> Bool { a.rawValue < b.rawValue }
}

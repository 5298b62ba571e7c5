/// The decision on whether the preloads of one resource give way to players. The coordinator of all resources makes it.
package enum PreloadStanding: Sendable, Equatable {
    /// Preloads pause while a player waits for this resource.
    case free
    /// Preloads pause, because a player waits for a resource.
    case held
    /// Preloads continue even if a player waits for this resource, because they have been held for a long time.
    case allowed
}

/// The decision of the coordinator on whether the preloads of one resource pause for players.
package enum PreloadPermission: Sendable, Equatable {
    /// Preloads pause while a player is waiting for this resource.
    case free
    /// Preloads pause, because a player is waiting for bytes of this or another resource.
    case held
    /// Preloads continue, even if a player is waiting for this resource, because they were held for a long time.
    case allowed
}

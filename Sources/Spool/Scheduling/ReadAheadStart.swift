/// How far ahead of a reader is read while it has taken little.
package enum ReadAheadStart: Sendable {
    /// By about a first request: for a player that has been told to play.
    case full
    /// By 256 KiB at first, and then by no more than the block that it is in and what a far line needs under way, until
    /// it has taken a megabyte: for who may ask for everything and leave when it has enough.
    case careful
}

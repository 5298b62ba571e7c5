/// How much of a resource a player asks for at once and keeps, in bytes. Values only: `LoadingPattern` decides by them.
struct LoadingPolicy: Sendable, Equatable {
    /// Calls a request off when this much lies ahead of the player.
    var cancelAbove: Int64 = 1 << 20
    /// Asks again when less than this lies ahead.
    var requestBelow: Int64 = 256 << 10
    /// Once the bit rate of the media is known: calls off with this many seconds ahead, but between 512 KiB and
    /// 8 MiB; asks again with a quarter of it. Nil leaves it at the bytes above.
    var secondsAhead: Double? = 30
    /// Keeps this much behind the player, for the short jumps that demuxers make.
    var keepBehind: Int64 = 256 << 10
    /// On a seek, sends the new request before the cancel of the former. Both orders happen with Apple's.
    var requestsBeforeCancelling = false
    /// How much of a queue's next item is loaded while another plays.
    var prebufferLength: Int64 = 256 << 10
}

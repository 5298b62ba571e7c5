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
    /// Whether several requests are open at once, as of a ``ConcurrentPattern``.
    var isConcurrent = false
    /// What follows when a request ends before the length that was told.
    var shortFinish = ShortFinish.endsResource
    /// How many bytes one bounded request of several is for.
    var readLength: Int64 = 64 << 10
    /// How many bytes still come before a request of several is called off that is of no use any more.
    var cancelsLateBy: Int64 = 2 << 20
    /// Fails an item whose request has brought nothing for so many seconds; nil waits for ever.
    var requestTimeout: Double?
    /// Whether a player that runs dry says so by a notification.
    var announcesStalls = true
    /// Whether a content type that is not allowed is an error of a request that is redirected, too.
    var checksTypeOfRedirects = false
    /// Whether the two bytes that go along with a request for information, handed over, make the player wait for ever.
    var chokesOnProbe = false

    /// What a player does when a request ends before the length that was told.
    enum ShortFinish: Sendable, Equatable {
        /// Takes the resource to end there, as is documented.
        case endsResource
        /// Asks for the rest again.
        case asksAgain
    }

    /// A player that does whatever the documentation leaves open in the way that is worst for a delegate. The time-out
    /// is the one that was reported of Apple's player.
    static let hostile: LoadingPolicy = {
        var policy = LoadingPolicy()
        policy.isConcurrent = true
        policy.cancelAbove = 512 << 10
        policy.requestTimeout = 20
        policy.announcesStalls = false
        policy.checksTypeOfRedirects = true
        policy.chokesOnProbe = true
        return policy
    }()
}

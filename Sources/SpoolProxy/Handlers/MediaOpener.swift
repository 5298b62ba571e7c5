#if Proxy
import HTTPRanges
import HTTPTypes
import Spool
import SpoolStorage

/// An object that opens readers of one resource for one request. The readers read a version that the client may
/// receive.
struct MediaOpener: Sendable {
    /// A reader, its resource, and the headers of the version that it reads.
    struct Opened: Sendable {
        let media: MediaResource
        let reader: MediaReader
        let head: OpenedResponse
        /// The resource that received the response to the client's own request, with its cookies, if that is not
        /// `media`.
        var confirming: MediaResource?

        /// Takes the cookies in the response to the client's own request.
        func takeCookies(for source: MediaSource) -> HTTPFields? { (confirming ?? media).takeCookies(for: source) }
    }

    /// The responses that a request may use.
    enum UsableResponses {
        /// Any response that may be shared.
        case any
        /// The response to the request itself, which the response to another request may replace.
        case own
        /// The response to the request itself, which no other response replaces.
        case separate
    }

    let cache: MediaCache
    let date: DateText
    let source: MediaSource
    /// The freshness that the client requires.
    let directives: RequestDirectives
    let priority: Priority
    /// The responses that the request may use.
    var usable = UsableResponses.any
    /// The client's turn to send a request to the origin.
    let turn = OriginTurn()

    /// Opens a reader and waits for the headers of its version.
    ///
    /// - Parameter known: The result of an earlier call for the same request, or `nil`.
    /// - Throws: `CacheError` with code `.resourceChanged` if another request's response has replaced the version of
    ///   `known`, and the errors of ``MediaReader/response()``.
    func open(_ range: MediaRange, of known: Opened?) async throws -> Opened {
        if let known {
            let opened = try await opened(known.media, range)
            guard !known.media.usesOthersResponse || opened.head.version == known.head.version else {
                opened.reader.cancel()
                throw CacheError(
                    .resourceChanged, "\(source.redactedURL): the origin's bytes changed before they were read",
                    key: known.media.key)
            }
            return opened
        }
        if usable == .separate { return try await opened(cache.separateMedia(for: source), range) }
        // A preload waits until no player needs bytes. Therefore, a player must never wait for a preload.
        let media =
            priority == .preload
            ? cache.media(for: source)
            : try await cache.sharedMedia(for: source, directives: directives, turn: turn, mayShare: usable == .any)
        if let joined = try await joined(media, range) { return joined }
        let reader = reader(of: media, range)
        do {
            let head = try await reader.response()
            if isForClient(head.response, of: media) {
                return Opened(media: reader.mediaInUse, reader: reader, head: head)
            }
        } catch let error as CacheError where error.code == .originErrorStatus && media.isShared {
            // The request was sent with another client's fields. The origin may accept this client's fields.
        }
        reader.cancel()
        let own = try await cache.sharedMedia(for: source, directives: directives, turn: turn, mayShare: false)
        if let joined = try await joined(own, range) { return joined }
        return try await opened(own, range)
    }

    /// Returns whether the client may receive a response that was requested for another client.
    ///
    /// The version that the client may share may have been replaced in the meantime. The response to an abandoned
    /// request is used if it may be stored and has no cookies, because no other client receives it.
    private func isForClient(_ response: StoredResponse, of media: MediaResource) -> Bool {
        !media.usesOthersResponse || media.joinsTransfer && response.isStored && !response.dropsCookies
            || response.mayBeShared(with: source, directives, at: date.second)
    }

    private func opened(_ media: MediaResource, _ range: MediaRange) async throws -> Opened {
        let reader = reader(of: media, range)
        let head = try await reader.response()
        return Opened(media: reader.mediaInUse, reader: reader, head: head)
    }

    /// Opens a reader of the version that other clients are reading, if the origin confirms that version to this
    /// client.
    private func joined(_ media: MediaResource, _ range: MediaRange) async throws -> Opened? {
        guard let (other, head) = try await media.confirmed(directives, priority: priority) else { return nil }
        let reader = reader(of: other, range)
        guard try await reader.response().version == head.version else {
            reader.cancel()
            return nil
        }
        return Opened(media: other, reader: reader, head: head, confirming: media)
    }

    private func reader(of media: MediaResource, _ range: MediaRange) -> MediaReader {
        // A client that requests an open-ended range may close the connection early. A range with an end is read in
        // full.
        let ahead: ReadAheadStart = if case .from = range { .careful } else { .full }
        return media.reader(range, priority: priority, handsOutSlices: true, directives: directives, ahead: ahead)
    }
}
#endif

package import HTTPRanges
import SpoolScheduling
import SpoolStorage
import Synchronization

/// Under ``FreshnessPolicy/http``, a request may use another request's response only if it could use that response from
/// a cache (RFC 9111 §4). `Vary` must select the response, and the response must be usable without a request to the
/// origin. Otherwise the request is sent to the origin. The decision requires the header fields of the response.
extension MediaCache {
    /// The maximum number of open resources with one key that a request examines.
    private static let lookLimit = 16

    /// Opens a resource for one request from a client.
    ///
    /// If another request is waiting for the origin's response, this request also waits for that response, but only
    /// once. If it may not use the response, it is sent to the origin without waiting for other such requests. If the
    /// other request ends without a response, one of the waiting requests is sent, and the others wait for its
    /// response.
    ///
    /// - Parameters:
    ///   - directives: The request directives of the client.
    ///   - turn: An object that ends the request's turn when the client is no longer served. If it is `nil`, the turn
    ///     ends with the response, or when the returned object is released.
    ///   - mayShare: Whether the request may use another request's response. The default is `true`.
    /// - Throws: `CancellationError` if the task is cancelled, or if `turn` has ended.
    package func sharedMedia(
        for source: MediaSource, directives: RequestDirectives = .init(), turn: OriginTurn? = nil, mayShare: Bool = true
    ) async throws -> MediaResource {
        guard freshness == .http, source.resolver == nil, !directives.onlyIfCached else { return media(for: source) }
        let own = identity(of: source)
        var passed: Set<OpenResources.Identity>? = mayShare ? [] : nil
        var variants: [StoredResponse] = []
        var mayWait = mayShare
        // A request that is repeated after an error must not wait for its own turn.
        turn?.release()
        context.opening.begin()
        while passed?.count ?? 0 < Self.lookLimit {
            // The response to a no-store request is for that request only, so other requests must not wait for it.
            let opened = open(own, orAnyBut: passed, for: source, asks: !directives.noStore)
            guard let (media, resource, requestTurn) = opened else { break }
            do {
                try await resource.load(media.credentials)
            } catch is CacheError {
                break  // The cache is closed, which the reader reports.
            }
            let others = media.source.headerFields
            let isAlike = variants.allSatisfy { $0.selection(by: others) == $0.selection(by: source.headerFields) }
            let decision = try await SharedUse(resource: resource).decide(
                for: source, directives, mayUse: mayShare, mayWait: mayWait && isAlike,
                maySendRequest: !media.isShared && !directives.noStore, asking: requestTurn, turn)
            switch decision {
            case .use(let use):
                resource.usage.note(source)
                return media.copy(using: use)
            case .ask(let requestTurn):
                resource.usage.note(source)
                return media.copy(asking: requestTurn)
            case .version(let generation, let response):
                let isSelected = response.isSelected(by: source)
                if !media.isShared || isSelected && (resource.turns.isTaken || resource.scheduler.isInUse) {
                    // Without a validator, the origin can't confirm the response.
                    let beside = isSelected && response.validator.canConfirm ? (media, generation) : nil
                    return separateMedia(for: source, beside: beside)
                }
                if isSelected { mayWait = false } else { variants.append(response) }
            case .nothing:
                if !media.isShared { return separateMedia(for: source, beside: nil) }
                mayWait = false
            }
            passed?.insert(media.identity)
        }
        return media(for: source)
    }

    /// Opens the resource with the identity `own`. If that resource is not open, but another resource with the same key
    /// is open, uses the other resource.
    ///
    /// Resources in `passed` are skipped. If `passed` is `nil`, no other resource is used. A request that creates the
    /// resource gets the turn to use the origin.
    private func open(
        _ own: OpenResources.Identity, orAnyBut passed: Set<OpenResources.Identity>?, for source: MediaSource,
        asks: Bool
    ) -> (MediaResource, OpenResource, RequestTurns.Turn?)? {
        let credentials = credentials(of: source)
        var requestTurn: RequestTurns.Turn?
        let found = resources.acquire(own, orAnyBut: passed) {
            let resource = OpenResource(key: own.key, credentials: credentials, context: context)
            // The turn is taken before another request can find the resource.
            if asks { requestTurn = SharedUse(resource: resource).takeTurn() }
            return resource
        }
        guard let (identity, resource) = found else { return nil }
        let isOwn = identity == own
        let media = MediaResource(
            identity: identity, credentials: isOwn ? credentials : resource.scheduler.lastCredentials,
            resource: resource, registry: resources, isShared: !isOwn)
        return (media, resource, requestTurn)
    }

    /// Opens a resource for a single request, so that no other request can use or replace its response.
    ///
    /// - Parameter beside: The version that other requests are reading. If the origin confirms this version, the
    ///   request joins the other requests. Any other version that the origin sends is not stored, because it would end
    ///   the transfers of those requests.
    package func separateMedia(
        for source: MediaSource, beside: (media: MediaResource, generation: Generation)? = nil
    ) -> MediaResource {
        let (identity, credentials) = (identity(of: source).separate(), credentials(of: source))
        let resource = resources.acquire(identity) {
            OpenResource(
                key: identity.key, credentials: credentials, context: context,
                separate: OpenResource.SeparatePurpose(beside: beside?.generation))
        }
        resource?.usage.note(source)
        return MediaResource(
            identity: identity, credentials: credentials, resource: resource, registry: resources,
            beside: beside?.media.copy(using: .stale))
    }
}

/// A client request's turn to use the origin. Until the turn ends, other requests wait for the response.
package final class OriginTurn: Sendable {
    private let state = Mutex<(isEnded: Bool, requestTurn: RequestTurns.Turn?)>((false, nil))

    package init() {}

    /// Ends the turn. Call this method when the request has received its response or an error, or when the client is no
    /// longer served. The next waiting request may then be sent to the origin, or use the response to this request.
    ///
    /// - Parameter isAnswered: Whether the request has received a response or an error. The default is `false`.
    package func end(isAnswered: Bool = false) {
        let previous = state.withLock { state in
            state.isEnded = true
            return state.requestTurn.take()
        }
        previous?.end(isAnswered: isAnswered)
    }

    /// Releases the turn, if the request has it. The request may take a turn again later.
    fileprivate func release() {
        state.withLock { $0.requestTurn.take() }?.end()
    }

    /// Adopts a request's turn, so that ``end(isAnswered:)`` ends it.
    ///
    /// - Throws: `CancellationError` if the turn has ended.
    fileprivate func take(_ requestTurn: RequestTurns.Turn) throws {
        let isEnded = state.withLock { state in
            if !state.isEnded { state.requestTurn = requestTurn }
            return state.isEnded
        }
        guard isEnded else { return }
        requestTurn.end()
        throw CancellationError()
    }
}

extension OpenResource {
    /// The purpose of a resource that serves a single request.
    struct SeparatePurpose: Sendable {
        /// The version that other requests are reading. It may be used after the origin has confirmed it.
        var beside: Generation?
    }
}

/// The use of an open resource by requests that may use another request's response.
private struct SharedUse {
    let resource: OpenResource

    /// The maximum time for which a request waits for the responses to requests with different header fields.
    private static let waitLimit = Duration.seconds(5)

    /// The way in which a request may use an open resource.
    enum Decision {
        /// Use the current version without a request to the origin.
        case use(StoredFreshness.Use)
        /// Request the resource from the origin, or revalidate the current version.
        case ask(RequestTurns.Turn)
        /// Do not use this stored version.
        case version(Generation, StoredResponse)
        /// There is no response that other requests may use.
        case nothing
    }

    /// Decides how a request may use the resource, after waiting for the response to another request.
    ///
    /// - Parameter requestTurn: The request's turn to use the origin, or `nil` if it does not have the turn yet.
    /// - Throws: `CancellationError` if the task is cancelled, or if the turn has ended.
    func decide(
        for source: MediaSource, _ directives: RequestDirectives, mayUse: Bool, mayWait: Bool, maySendRequest: Bool,
        asking requestTurn: RequestTurns.Turn?, _ turn: OriginTurn?
    ) async throws -> Decision {
        var mayWait = mayWait
        let clock = resource.context.clock
        let waitEnd = clock.elapsed() + Self.waitLimit
        while true {
            let current = resource.generation
            let stored = current.flatMap { $0.isKept ? ($0, resource.headers.response(of: $0)) : nil }
            if mayUse, let response = stored?.1, response.isSelected(by: source) {
                let use = response.use(at: clock.secondsSince1970(), for: directives)
                if use != .validate { return .use(use) }
            }
            // A request that can't take a turn, due to different header fields or `no-store`, waits for a limited time
            // in total.
            let limit = maySendRequest ? nil : max(waitEnd - clock.elapsed(), .zero)
            if mayWait, requestTurn == nil, limit != .zero, let end = resource.turns.endOfTurn(within: limit, on: clock)
            {
                for await isAnswered in end where isAnswered {
                    mayWait = false
                    break
                }
                try Task.checkCancellation()
                continue
            }
            // If the version has changed in the meantime, the decision is made again.
            if resource.generation !== current { continue }
            // A response that may belong to another version would end the transfers that other requests need. A
            // response that is not stored is for a single request.
            let isShareable = stored?.1.validator.isStrong == true || !resource.scheduler.isFetching
            let isFree = current == nil || stored != nil && isShareable
            if maySendRequest, let requestTurn = requestTurn ?? (isFree ? takeTurn() : nil) {
                try turn?.take(requestTurn)
                return .ask(requestTurn)
            }
            // If another request has taken the turn since the check above, this request waits for it.
            if maySendRequest, isFree, mayWait, resource.turns.isTaken { continue }
            return stored.map { .version($0, $1) } ?? .nothing
        }
    }

    /// Takes the turn to use the origin. Returns `nil` if another request has it.
    func takeTurn() -> RequestTurns.Turn? {
        resource.turns.take(joinsTransfer: resource.generation == nil && resource.scheduler.isFetching)
    }
}

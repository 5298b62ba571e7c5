#if Proxy
import Foundation
import HTTPRanges
import HTTPTypes
import NIOCore
import Spool
import SpoolStorage

/// Responds with media files, through the cache.
struct MediaResponder: Sendable {
    let cache: MediaCache
    let configuration: ProxyConfiguration
    let date: DateText
    let clock: any Clock<Duration>
    /// What waits for an origin that can't be had now; nil: nothing does.
    let patience: OriginPatience?
    let passing: PassingResponder
    let manifests: ManifestResponder
    /// What is for one user each, before the server's own origin.
    let passed = PassedResources()

    /// The response to a `GET` or `HEAD`.
    ///
    /// - Throws: `RequestFailure`: 504 where the origin does not begin to respond in time.
    func respond(to request: RequestHead, _ call: OriginCall) async throws -> Response {
        var source = try call.source
        let hold = manifests.holds.limit(for: call.url)
        source.responseHold = hold
        source.presentation = manifests.presentations.root(of: call.url)
        // Whatever the cache's key policy makes of queries: these say which playlist is meant.
        if HLSDelivery.hasDirectives(call.url) { source.key = CacheKeyPolicy.url.key(for: source.url) }
        // The key includes the credentials even if the policy does not separate clients by them.
        let client = cache.key(for: source).with(credentialsIn: call.fields)
        if call.isReverse, passed.contains(client, at: date.second) {
            return try await passing.respond(to: request, call, body: nil)
        }
        if try await isUnkeptKey(source, call) { return try await passing.respond(to: request, call, body: nil) }
        let demand = demand(of: request)
        let priority = Self.priority(of: request, call)
        if request.method == .head, let response = try await head(request, call, cache.media(for: source), demand) {
            return response
        }
        var range = range(of: request)
        var known: MediaResource?
        let turn = OriginTurn()
        defer { turn.end() }
        // Once for what seems to be asked for, and once more for what is: conditions may turn a part into the whole.
        for _ in 0..<3 {
            let (media, reader, opened): (MediaResource, MediaReader, OpenedResponse)
            do {
                let open = { [source, known, range] in
                    Task(executorPreference: cache.readingExecutor) {
                        try await self.open(source, known, range, demand, priority, turn)
                    }
                }
                // While players wait for bytes, what nobody waits for does.
                let limit = priority == .preload ? Self.preloadPatience : hold
                let patience = limit == nil ? patience : nil
                (media, reader, opened) =
                    if let patience {
                        try await patiently(patience, open)
                    } else {
                        try await withinTime(open(), source, request, call, hold: limit)
                    }
                known = media
                if call.isReverse, !demand.onlyIfCached, needsOwnCookies(opened) {
                    reader.cancel()
                    passed.insert(client, at: date.second)
                    return try await passing.respond(to: request, call, body: nil)
                }
                if let manifest = try await manifest(
                    of: media, opened, for: request, call, hold: hold, patience)
                {
                    reader.cancel()
                    return response(to: request, manifest, opened)
                }
            } catch let error as CacheError {
                turn.end(isAnswered: true)
                if let said = error.response, !said.isWhole, request.method == .get, !demand.onlyIfCached,
                    Self.mayHandOn(said.status)
                {
                    // Too long to be kept in memory, and so asked for once more.
                    return try await passing.respond(to: request, call, body: nil)
                }
                return failed(error, request)
            }
            let plan = ResponsePlan(for: request, opened.response, now: date.second, boundary: Self.boundary())
            if let wanted = plan.content.range, request.method == .get,
                !Self.isSame(wanted, range, length: opened.response.length)
            {
                reader.cancel()
                range = wanted
                continue
            }
            return response(to: request, plan, media, reader, opened)
        }
        throw RequestFailure(502, "the origin's responses are each of another version", retryAfter: 1)
    }

    /// Whether it is a key that is not to be kept, and is not there by a download.
    private func isUnkeptKey(_ source: MediaSource, _ call: OriginCall) async throws -> Bool {
        guard !configuration.keepsKeys, !call.isForOwner, manifests.keys.contains(call.url) else { return false }
        do {
            return try await cache.media(for: source).storedResource()?.isComplete != true
        } catch is CacheError {
            return true  // What can't be looked up is not there.
        }
    }

    /// Whether the origin sent cookies that belong only to the client that caused the response.
    ///
    /// Under policies other than HTTP's, clients with other credentials use the stored response, which has no cookies.
    private func needsOwnCookies(_ opened: OpenedResponse) -> Bool {
        opened.response.dropsCookies && (cache.freshness == .http || opened.source == .miss)
    }

    private func manifest(
        of media: MediaResource, _ opened: OpenedResponse, for request: RequestHead, _ call: OriginCall,
        hold: Duration?, _ patience: OriginPatience?
    ) async throws -> ManifestResponder.Manifest? {
        let look = { [manifests] in
            Task(executorPreference: media.readingExecutor) {
                try await manifests.manifest(of: media, opened, for: request, call)
            }
        }
        if let patience { return try await patiently(patience, look) }
        let limit = max(.seconds(10), hold ?? .zero)
        let looking = look()
        guard let found = try await FirstResult.value(of: looking, within: limit, on: clock) else {
            looking.cancel()
            throw RequestFailure(504, "the manifest has not come within \(limit)", retryAfter: 1)
        }
        return found
    }

    /// Whether two ranges mean the same bytes of a resource.
    private static func isSame(_ one: MediaRange, _ other: MediaRange, length: Int64?) -> Bool {
        guard let length else { return one == other }
        func bounds(_ range: MediaRange) -> Range<Int64>? {
            switch range {
            case .from(let start): start <= length ? start..<length : nil
            case .bytes(let range): range.lowerBound <= length ? range.clamped(to: 0..<length) : nil
            case .suffix(let count): max(0, length - max(0, count))..<length
            }
        }
        return bounds(one) == bounds(other)
    }

    /// How fresh the client wants it, where it has a say.
    private func demand(of request: RequestHead) -> FreshnessDemand {
        guard configuration.followsRequestDirectives else { return FreshnessDemand() }
        return FreshnessDemand(fields: request.fields.all)
    }

    /// How long the owner's preloads wait for a response to begin.
    private static let preloadPatience = Duration.seconds(3600)

    /// Of the owner's commands, those preload that say so: `u=7`, the lowest urgency (RFC 9218 §4.1).
    private static func priority(of request: RequestHead, _ call: OriginCall) -> Priority {
        call.isForOwner && request.fields["priority"] == "u=7" ? .preload : .playback
    }

    private func reader(
        of media: MediaResource, _ range: MediaRange, _ demand: FreshnessDemand, _ priority: Priority
    ) -> MediaReader {
        // Who names no end may leave before it; what is asked for with its end is taken for wanted.
        let ahead: ReadAheadStart = if case .from = range { .careful } else { .full }
        return media.reader(range, priority: priority, handsOutSlices: true, demand: demand, ahead: ahead)
    }

    /// The origin's own response to a `HEAD`, where what is stored can't be used as it is; nil: it can.
    private func head(
        _ request: RequestHead, _ call: OriginCall, _ media: MediaResource, _ demand: FreshnessDemand
    ) async throws -> Response? {
        if demand.onlyIfCached { return nil }
        guard try await media.storedResource() != nil else {
            return manifests.withoutLength(try await passing.respond(to: request, call, body: nil), of: call)
        }
        guard cache.freshness == .http, try await media.needsAsking(demand) else { return nil }
        let date = Date()
        let passed = try await passing.pass(request, call, body: nil)
        try await media.update(byHead: passed.head, from: passed.url, requestDate: date)
        var response = passing.response(passed, to: request)
        response.note(
            .forwarded(.stale, stored: false, status: passed.head.status.code), by: configuration.nodeName)
        return manifests.withoutLength(response, of: call)
    }

    /// The range to open a reader for: what is asked; of several, the first one, whose head is that of all.
    private func range(of request: RequestHead) -> MediaRange {
        guard request.method == .get, let first = RangeHeader(fields: request.fields.all)?.specifiers.first else {
            return .all
        }
        switch first {
        case .bounded(let first, let last): return .bytes(first..<last + 1)
        case .from(let first): return .from(first)
        case .suffix(let count): return .suffix(count)
        }
    }

    /// A reader, and the head of the version that it is in.
    private typealias Opened = (media: MediaResource, reader: MediaReader, head: OpenedResponse)

    /// - Parameters:
    ///   - known: The resource that an earlier reader of the same request has opened, or `nil`.
    ///   - turn: The client's turn to ask the origin.
    private func open(
        _ source: MediaSource, _ known: MediaResource?, _ range: MediaRange, _ demand: FreshnessDemand,
        _ priority: Priority, _ turn: OriginTurn
    ) async throws -> Opened {
        if let known {
            let reader = reader(of: known, range, demand, priority)
            let head = try await reader.response()
            return (reader.mediaInUse, reader, head)
        }
        // A preload waits for players, so that no player may wait for it.
        let media =
            priority == .preload
            ? cache.media(for: source) : try await cache.sharedMedia(for: source, demand: demand, turn: turn)
        if let joined = try await joined(media, range, demand, priority) { return joined }
        let reader = reader(of: media, range, demand, priority)
        do {
            let head = try await reader.response()
            // Another version may have replaced the one that the client may share. The response to a request that was
            // given up is used if it may be stored: no other client receives it.
            if !media.usesOthersResponse || media.joinsTransfer && head.response.isStored
                || head.response.mayBeShared(with: source, demand, at: date.second)
            {
                return (reader.mediaInUse, reader, head)
            }
        } catch let error as CacheError where error.code == .originRefused && media.isShared {
            // The request had another client's fields. The origin may accept this client's own.
        }
        reader.cancel()
        let own = try await cache.sharedMedia(for: source, demand: demand, turn: turn, mayShare: false)
        if let joined = try await joined(own, range, demand, priority) { return joined }
        let ownReader = self.reader(of: own, range, demand, priority)
        let head = try await ownReader.response()
        return (ownReader.mediaInUse, ownReader, head)
    }

    /// Opens a reader of the version that other clients are reading, if the origin confirms that version to this
    /// client.
    private func joined(
        _ media: MediaResource, _ range: MediaRange, _ demand: FreshnessDemand, _ priority: Priority
    ) async throws -> Opened? {
        guard let (other, head) = try await media.confirmed(demand, priority: priority) else { return nil }
        let reader = reader(of: other, range, demand, priority)
        guard try await reader.response().version == head.version else {
            reader.cancel()
            return nil
        }
        return (other, reader, head)
    }

    /// What is brought, however long it takes, and however often the origin can't be reached.
    private func patiently<Value: Sendable>(
        _ patience: OriginPatience, _ bring: () -> Task<Value, any Error>
    ) async throws -> Value {
        var count = OriginPatience.Count()
        while true {
            let bringing = bring()
            do {
                return try await withTaskCancellationHandler {
                    try await bringing.value
                } onCancel: {
                    bringing.cancel()
                }
            } catch let error as CacheError {
                try await patience.wait(after: error, &count)
            }
        }
    }

    /// - Throws: `RequestFailure` with status 504, or 503 where the origin held its response back for longer than it may.
    private func withinTime(
        _ opening: Task<Opened, any Error>, _ source: MediaSource, _ request: RequestHead, _ call: OriginCall,
        hold: Duration?
    ) async throws -> Opened {
        let limit = max(configuration.limits.responseTime, hold ?? .zero)
        if let opened = try await FirstResult.value(of: opening, within: limit, on: clock) { return opened }
        // What was asked for may still come, for the next who asks.
        Task { [clock, manifests] in
            // A live playlist must not stay, either.
            let late = try? await FirstResult.value(of: opening, within: .seconds(30), on: clock)  // Nobody waits.
            guard let late else { return opening.cancel() }
            _ = try? await manifests.manifest(of: late.media, late.head, for: request, call)  // Nor for this.
            opening.cancel()
        }
        guard hold == nil else {
            throw RequestFailure(
                503, "\(call.url.nameForMessages): the origin has not got within \(limit) what it was asked for",
                retryAfter: 1)
        }
        let cause = cache.media(for: source).retryCause.map { "; \($0)" } ?? ""
        throw RequestFailure(
            504, "\(call.url.nameForMessages): the origin has not begun to respond within \(limit)\(cause)",
            retryAfter: 1)
    }

    private func response(
        to request: RequestHead, _ plan: ResponsePlan, _ media: MediaResource, _ reader: MediaReader,
        _ opened: OpenedResponse
    ) -> Response {
        var response = Response(plan.head)
        response.note(CacheStatus.Outcome(opened, at: date.second), by: configuration.nodeName)
        response.head.fields.append(HTTPField(name: .via, value: "1.1 spool"))
        response.isStored = opened.source == .hit
        response.contentRange = plan.contentRange
        response.origin = (media, opened.response)
        guard request.method == .get else {
            reader.cancel()
            if case .whole(let length) = plan.content { response.lengthForHead = length }
            return response
        }
        switch plan.content {
        case .none: reader.cancel()
        case .whole(let length):
            response.body = .media(reader, count: length)
        case .range(let range):
            response.body = .media(reader, count: range.upperBound - range.lowerBound)
        case .multipart(let parts):
            reader.cancel()
            response.body = .parts(
                self.parts(parts, of: media, opened.version), count: parts.contentLength ?? 0)
        }
        return response
    }

    private func response(
        to request: RequestHead, _ manifest: ManifestResponder.Manifest, _ opened: OpenedResponse
    ) -> Response {
        let plan = ResponsePlan(for: request, manifest.response, now: date.second, boundary: Self.boundary())
        var response = Response(plan.head)
        response.note(CacheStatus.Outcome(opened, at: date.second), by: configuration.nodeName)
        response.head.fields.append(HTTPField(name: .via, value: "1.1 spool"))
        response.isStored = true
        response.contentRange = plan.contentRange
        switch plan.content {
        case .none: break
        case .whole: response.body = .bytes(ByteBuffer(bytes: manifest.bytes))
        case .range(let range):
            response.body = .bytes(ByteBuffer(bytes: manifest.bytes[Int(range.lowerBound)..<Int(range.upperBound)]))
        case .multipart(let parts):
            var body = ByteBuffer()
            for (index, range) in parts.ranges.enumerated() {
                body.writeString(parts.head(ofPart: index))
                body.writeBytes(manifest.bytes[Int(range.lowerBound)..<Int(range.upperBound)])
            }
            body.writeString(parts.closing)
            response.body = .bytes(body)
        }
        return response
    }

    private func parts(
        _ parts: MultipartByteRanges, of media: MediaResource, _ version: GenerationIdentifier?
    ) -> [Response.Part] {
        var body: [Response.Part] = []
        for (index, range) in parts.ranges.enumerated() {
            body.append(.text(parts.head(ofPart: index)))
            body.append(
                .media(
                    media.sliceReader(.bytes(range)), count: range.upperBound - range.lowerBound,
                    of: version))
        }
        return body + [.text(parts.closing)]
    }

    private static func boundary() -> String {
        (0..<3).map { _ in String(UInt64.random(in: .min ... .max), radix: 16) }.joined()
    }

    /// Whether a status means to the client what it meant to the cache: not where it brings media, or is about conditions or
    /// ranges that the cache made.
    private static func mayHandOn(_ status: Int) -> Bool {
        (200...599).contains(status) && ![200, 206, 304, 416].contains(status)
    }

    /// What the origin said, where it said something; else why there is nothing.
    private func failed(_ error: CacheError, _ request: RequestHead) -> Response {
        if let said = error.response, said.isWhole || request.method == .head, Self.mayHandOn(said.status) {
            var response = Response(ResponseHead(said.status, said.fields), .bytes(ByteBuffer(bytes: said.body)))
            response.lengthForHead = said.fields.contentLength
            response.note(.forwarded(.miss, stored: false, status: said.status), by: configuration.nodeName)
            return response
        }
        switch error.code {
        case .unsatisfiableRange:
            return Response(RequestFailure(416, "\(error)"))
        case .originRefused:
            return Response(
                RequestFailure(error.httpStatus.map { (400...599).contains($0) ? $0 : 502 } ?? 502, "\(error)"))
        case .notStored:
            return Response(RequestFailure(504, "\(error)"))
        case .malformedResponse, .resourceChanged:
            return Response(RequestFailure(502, "\(error)"))
        case .originUnavailable:
            // What time does not cure is not told as if it did (RFC 9110 §15.6.3).
            if let cause = error.underlying as? UpstreamError, !cause.isTransient {
                return Response(RequestFailure(502, "\(error)"))
            }
            return Response(RequestFailure(504, "\(error)", retryAfter: 1))
        default:
            return Response(RequestFailure(500, "\(error)"))
        }
    }
}
#endif

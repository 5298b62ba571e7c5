import ByteRanges
import Foundation
import HTTPRanges
import HTTPTypes
import SpoolScheduling
import SpoolStorage

/// One request to the origin, from its first header field to its last stored byte.
///
/// A transfer runs as one task on the blocking executor, so that the thread that receives bytes also writes them. The
/// transfer needs permission from the scheduler before each piece. It reports stored bytes and the end of the request,
/// and does not make decisions about other bytes.
struct Transfer {
    let start: TransferStart
    let resource: OpenResource
    private let record: TransferRecord

    /// The way in which a transfer ended.
    enum Outcome {
        case ended
        /// The response could not be used, but the same bytes may be requested again immediately.
        case restart
        /// The request may be retried.
        case interrupted(CacheError, retryAfter: Duration?)
        /// A retry would also fail.
        case refused(CacheError, isCredentialFailure: Bool = false)
    }

    init(_ start: TransferStart, of resource: OpenResource) {
        self.start = start
        self.resource = resource
        record = TransferRecord(resource)
    }

    var context: CacheContext { resource.context }
    var scheduler: Scheduler { resource.scheduler }
    var exchange: OriginExchange { OriginExchange(credentials: start.credentials, context: context) }
    var clock: CacheClock { resource.context.clock }

    /// Fetches and stores the bytes, and reports the end to the scheduler.
    func run() async {
        let moment = InstrumentEvent.TransferName(resource: resource.usage.number, id: start.id)
        context.instruments.note(.transferBegan(moment, redactedURL: resource.redactedURL))
        defer { context.instruments.note(.transferEnded(moment)) }
        let outcome = await outcome()
        if let (offset, lease) = scheduler.continuation(of: start.id) { lease.generation.endWriting(at: offset) }
        record.end(outcome)
        finish(outcome)
    }

    private func outcome() async -> Outcome {
        do {
            return try await request()
        } catch {
            switch exchange.reported(error, at: place) {
            case is CancellationError: return .ended
            case let failure as CacheError:
                let isTransient = (error as? UpstreamError)?.isTransient ?? false
                return isTransient ? .interrupted(failure, retryAfter: nil) : .refused(failure)
            case let other:
                return .refused(CacheError(.originUnavailable, "\(place): \(other)", underlying: other))
            }
        }
    }

    private var place: String {
        "\(resource.redactedURL), \(start.rangeInWords)"
    }

    private func request() async throws -> Outcome {
        let preconditions = resource.version.preconditions(for: start.id)
        // Clients that open the resource later did not cause this request.
        let openings = resource.freshness.openingsOfRequest
        let prepared = try await exchange.prepare()
        var request = prepared.request
        request.longestHold = start.credentials.source.responseHold
        request.purpose = exchange.purpose(of: start.priority)
        // Manifests are small, and some servers that generate them handle ranges incorrectly.
        let omitsRange = start.lower == 0 && ContentTypes.isManifest(start.credentials.source.url)
        request.headerFields = preconditions.fields(
            adding: start.lower, upper: omitsRange ? nil : start.upper, isRange: start.isRange && !omitsRange,
            to: request.headerFields)
        let origin = prepared.origin
        let startsVersion = preconditions.isValidation || resource.generation == nil
        if let outcome = preloadDelayOutcome(from: origin) { return outcome }
        scheduler.note(origin.link)
        let connection = try await connect(to: origin)
        defer { connection.end() }
        connection.cancelsForTurns { [scheduler, id = start.id] in scheduler.cancelForTurn(id, evenIfFlowing: $0) }
        guard scheduler.maySendRequest(start.id) else { return .ended }
        resource.send(.requested(lower: start.lower, upper: start.upper))
        resource.serving.recordRequest()
        let asked = clock.elapsed()
        let requestDate = clock.now()
        record.start(start, at: requestDate, elapsed: asked)
        let isHeld = request.longestHold != nil
        // While the origin delays this response, its connection does not count toward the limit.
        if isHeld { connection.pause() }
        let sent = try await sendInAnyForm(request, startsVersion: startsVersion, to: origin, over: connection)
        request = sent.request
        var response = sent.response
        record.responded(response.head.status.code)
        if response.head.status == .partialContent, request.headerFields[.range] != nil {
            // An origin that sends parts does not reject ranges with 404, so a missing resource is not requested again.
            origin.record(.status(404), succeedsWithoutRange: false, at: clock.elapsed())
        }
        connection.resume()
        if !isHeld, !sent.isRepeated {
            scheduler.note(origin.record(roundTrip: (clock.elapsed() - asked) / .seconds(1)))
        }
        var cacheability = ResponseCacheability(
            policy: context.configuration.freshness, request: request.headerFields, response: response.head,
            from: response.url, of: resource.redactedURL, requestDate: requestDate, responseDate: clock.now(),
            isOfSite: context.configuration.storesEveryStatus, hasOwnCookies: request.cookies?.isEmpty == false)
        cacheability.freshness.requesterHash = resource.freshness.requesterHash
        if isOtherSuccess(response.head) {
            // The body is used like that of a 200, but not stored. A client that opens the resource later requests it
            // again.
            response.head.status = .ok
            cacheability.mayStore = false
            cacheability.freshness.freshUntil = 0
            cacheability.freshness.exclusion = .error
        }
        let firstBytes = try await firstBytes(of: &response, from: origin)
        var head = head(of: response, to: request)
        // An origin that may reject ranges does not support them, even if it claims to.
        if sent.omitsRange { head.headerFields[.acceptRanges] = nil }
        if isMislabeled(head, startingWith: firstBytes) { head.headerFields[.contentEncoding] = nil }
        let verdict: ResponseEvaluation.Verdict
        do {
            verdict = try await ResponseEvaluation(
                resource: resource, head: head, start: start,
                requestedStart: request.headerFields[.range] == nil ? nil : start.lower,
                hasIfRange: request.headerFields[.ifRange] != nil,
                isConditional: [.ifNoneMatch, .ifModifiedSince].contains { request.headerFields[$0] != nil },
                rejectsRanges: sent.rejectsRanges || sent.omitsRange && !startsVersion,
                cacheability: cacheability, openings: openings, fields: prepared.fields, firstBytes: firstBytes
            ).run()
        } catch let error as CacheError where error.code == .malformedResponse {
            throw error.about(await answer(response))
        }
        if case .refuse(let refusal) = verdict, case .retry = refusal.kind {
            origin.recordFailure(.refusing, at: clock.elapsed())
        } else {
            origin.recordResponse()
        }
        // Before the first response, range support is only an assumption.
        let isFirst = preconditions.isValidation || resource.generation == nil
        switch verdict {
        case .store(let offset, let body):
            start.credentials.accepted()
            return try await stream(response, from: offset, body, over: connection, to: origin)
        case .restart:
            return .restart
        case .unsatisfiable(let length):
            if length == nil, requestsWithoutRange(request, evenAfterPart: isFirst) || appliesToAnyVersion(request) {
                return .restart
            }
            // An empty file's headers are requested without a range, because no range of an empty file can be
            // satisfied.
            if length == 0, resource.generation == nil, requestsWithoutRange(request) { return .restart }
            return try await unsatisfiable(length, response)
        case .refuse(let refusal):
            // The response is a 416 that can't be correct, a part whose position is unknown, or a part with status 200.
            let isUnusablePart = refusal.kind == .malformed && [200, 206, 416].contains(refusal.status)
            // A part that states a range other than the requested one is an error that affects only this request. A
            // part with the length of the whole resource shows that the origin ignores ranges.
            let stated = refusal.status == 206 ? response.head.headerFields.parsedContentRange : nil
            let isWhole = stated?.length.map { $0 == response.head.headerFields.contentLength } ?? false
            if isUnusablePart, requestsWithoutRange(request, evenAfterPart: isFirst || stated == nil || isWhole) {
                return .restart
            }
            if refusal.status == 500, request.headerFields[.range] != nil { resource.omitRangeOnce() }
            return try await handle(refusal, of: response, prepared.number, origin)
        }
    }

    /// Takes one of the origin's connections. The connection of a preload counts as a player's connection as soon as a
    /// player waits for the bytes of this transfer.
    private func connect(to origin: OriginState) async throws -> OriginConnection {
        guard start.priority == .preload else {
            return try await exchange.connect(to: origin, as: .playback, cancelPaused: cancelPausedTransfer)
        }
        if let connection = exchange.connectIfAvailable(to: origin, as: .preload) { return connection }
        return try await withThrowingTaskGroup(of: OriginConnection.self) { group in
            group.addTask { try await exchange.connect(to: origin, as: .preload) }
            group.addTask {
                await scheduler.waitForPlaybackPriority(start.id)
                try Task.checkCancellation()
                return try await exchange.connect(
                    to: origin, as: .playback, cancelPaused: cancelPausedTransfer)
            }
            let first = await group.nextResult()
            group.cancelAll()
            // If both succeed, the other connection is returned when it is released.
            guard let first else { throw CancellationError() }
            return try first.get()
        }
    }

    /// Cancels a paused transfer of the same resource. Returns whether it cancelled one.
    func cancelPausedTransfer() -> Bool { scheduler.cancelForTurn() }

    /// Returns an outcome if a preload's transfer must not send its request yet, because the origin has sent
    /// `Retry-After`. A player does not wait, unless a request for the bytes at its own position has failed. The bytes
    /// of an imported file are stored immediately.
    private func preloadDelayOutcome(from origin: OriginState) -> Outcome? {
        let delay = origin.retryAfterDeadline - clock.elapsed()
        let isOfFile = start.credentials.source.upstreamOverride != nil
        guard start.priority == .preload, delay > .zero, !isOfFile else { return nil }
        let error = CacheError(.originUnavailable, "\(place): the origin requested a delay")
        return .interrupted(error, retryAfter: delay)
    }

    /// Returns whether to request the whole resource, because the origin does not send usable parts.
    ///
    /// - Parameter evenAfterPart: Whether to request the whole resource even if the origin has sent a usable part.
    private func requestsWithoutRange(_ request: UpstreamRequest, evenAfterPart: Bool = false) -> Bool {
        guard request.headerFields[.range] != nil else { return false }
        return scheduler.requestsWholeResource(evenAfterPart: evenAfterPart)
    }

    /// Returns whether a 416 response may belong to a version other than the current one, which was not known when the
    /// request was sent.
    private func appliesToAnyVersion(_ request: UpstreamRequest) -> Bool {
        request.headerFields[.ifRange] == nil && resource.generation?.resourceVersion.validator.ifRangeText != nil
    }

    private func unsatisfiable(_ length: Int64?, _ response: UpstreamResponse) async throws -> Outcome {
        if let length {
            try resource.version.recordLength(length, from: start.id)
            return .restart
        }
        // The origin has no bytes at or after this offset, and does not send the length. If all bytes before this
        // offset are stored or being received, the resource ends here.
        if scheduler.reaches(start.lower) {
            try resource.version.recordLength(start.lower, from: start.id)
            return .restart
        }
        let text = "\(place): the origin responded that the range is past the end"
        let error = CacheError(.unsatisfiableRange, text, status: 416)
        return .refused(error.about(await answer(response)))
    }

    /// Returns the response as the detail of an error. If the client does not wait for retries, it may also receive a
    /// long body.
    private func answer(_ response: UpstreamResponse) async -> OriginResponse {
        let source = context.configuration.forwardsErrors ? start.credentials.source : nil
        return await OriginResponse.reading(response, for: source, on: clock, context.executor)
    }

    private func handle(
        _ refusal: PartialResponse.Refusal, of response: UpstreamResponse, _ number: Int, _ origin: OriginState
    ) async throws -> Outcome {
        let text = "\(place): the origin responded with status \(refusal.reason)"
        func error(_ code: CacheError.Code) async -> CacheError {
            let error = CacheError(code, text, status: refusal.status)
            return error.about(await answer(response))
        }
        switch refusal.kind {
        case .credentials:
            let isFresh = try await start.credentials.refresh(number, status: refusal.status)
            // Some origins reject ranges that are longer than a limit, or that are open-ended. For the pages of a site,
            // this status has different reasons.
            let isTooLong = refusal.status == 403 && (start.upper == nil || !isFresh) && !context.storesAnyResponse
            let mayBeShorter = isTooLong && scheduler.requestRejected(start.id)
            return isFresh || mayBeShorter
                ? .restart : .refused(await error(.originErrorStatus), isCredentialFailure: true)
        case .retry(let after):
            let delay = after.map { $0.delay(now: clock.secondsSince1970()) }
            if let delay { origin.delayPreloads(until: clock.elapsed() + RetryPolicy.bounded(delay)) }
            let isFirst = resource.generation == nil || resource.version.preconditions(for: start.id).isValidation
            if context.configuration.forwardsErrors, isFirst { return .refused(await error(.originUnavailable)) }
            let isTriedAgain = scheduler.mayRetry(start.id, retryAfter: delay, now: clock.elapsed())
            guard isTriedAgain else { return .interrupted(await error(.originUnavailable), retryAfter: delay) }
            let error = CacheError(.originUnavailable, text, status: refusal.status).about(OriginResponse(response))
            return .interrupted(error, retryAfter: delay)
        case .status:
            let error = await error(.originErrorStatus)
            guard error.response?.reportsExpiration == true else { return .refused(error) }
            let isFresh = try await start.credentials.refresh(number, status: 403)
            return isFresh ? .restart : .refused(error, isCredentialFailure: true)
        case .malformed: return .refused(await error(.malformedResponse))
        }
    }

    // MARK: - The body

    private func stream(
        _ response: UpstreamResponse, from offset: Int64, _ claim: ResponseBody,
        over connection: OriginConnection, to origin: OriginState
    ) async throws -> Outcome {
        var machine = StateMachine(offset: offset, end: claim.end, firstStoredOffset: claim.offset)
        let isPart = response.head.status == .partialContent
        scheduler.responseStarted(start.id, claim)
        resource.recordDescribed()
        if scheduler.isStream(start.id) { connection.recordStream() }
        var body = response.body.makeAsyncIterator()
        var meter = RateMeter(now: clock.elapsed())
        while let (limit, piece) = await nextPiece(connection) {
            meter.resume(at: clock.elapsed())
            let chunk: UpstreamChunk?
            do {
                chunk = try await body.next()
            } catch {
                guard claim.end == nil || machine.position < claim.end ?? 0 else { return .ended }
                exchange.recordLoss(error, of: origin)
                throw error
            }
            guard let chunk else {
                connection.recordBodyEnd()
                return try end(of: machine.bodyEnded())
            }
            resource.serving.received(chunk.count)
            record.received(chunk.count)
            if let sample = meter.sample(bytes: chunk.count, at: clock.elapsed()) {
                scheduler.note(origin.record(bytes: sample.bytes, seconds: sample.seconds))
            }
            switch machine.chunk(count: chunk.count, limit: limit) {
            case .skip: continue
            case .stop: return .ended
            case .store(let skip, let count, let offset):
                guard try await store(chunk, skip: skip, count: count, at: offset, piece, connection) else {
                    return .ended
                }
            }
            if machine.position == claim.end {
                if let rest = meter.rest() { scheduler.note(origin.record(bytes: rest.bytes, seconds: rest.seconds)) }
                // Reading the end of the body returns the connection to the transport.
                let surplus = try? await body.next()  // All requested bytes have been received, even if this fails.
                connection.recordBodyEnd()
                guard isPart, claim.offset > 0, let surplus else { return .ended }
                return resource.version.discard(afterSurplus: surplus.count, of: start.id) ? .restart : .ended
            }
        }
        return .ended
    }

    /// Waits for permission to receive more bytes. Returns the offset before which readers need bytes, or `nil` to
    /// stop.
    private func nextPiece(_ connection: OriginConnection) async -> (limit: Int64, piece: Scheduler.Piece)? {
        while true {
            let piece = scheduler.piece(start.id)
            switch piece.permission {
            case .proceed(let limit):
                connection.resume()
                return (limit, piece)
            case .stop: return nil
            case .hold:
                connection.pause()
                await scheduler.hold(start.id)
            }
        }
    }

    private func end(of action: StateMachine.EndAction) throws -> Outcome {
        switch action {
        case .complete: return .ended
        case .endOfResource(let length):
            // If the origin states a length of 0, the file is empty. Otherwise a program on the origin has probably
            // failed. Readers learn the length only after that is recorded.
            if length == 0, !context.storesAnyResponse,
                let generation = scheduler.continuation(of: start.id)?.lease.generation,
                generation.storedRanges.isEmpty
            {
                resource.sendEmptyResponse()
                resource.version.recordError(generation)
            }
            try resource.version.recordLength(length, from: start.id)
            return .ended
        case .interrupted(let offset):
            return .interrupted(
                CacheError(
                    .originUnavailable, "\(place): the origin ended its response early, at byte \(offset.grouped)"),
                retryAfter: nil)
        }
    }

    /// Stores received bytes, and waits for space if there is none.
    ///
    /// - Parameter piece: The permission with which the bytes were received.
    /// - Returns: `false` if no more bytes of the transfer may be stored.
    private func store(
        _ chunk: UpstreamChunk, skip: Int, count: Int, at offset: Int64, _ piece: Scheduler.Piece,
        _ connection: OriginConnection
    ) async throws -> Bool {
        guard let lease = piece.lease else { return false }
        let end = offset + Int64(count)
        var position = offset
        var isAwaited = piece.isAwaited
        while position < end {
            var space = await lease.generation.reserveSpace(
                for: position..<end, isAwaited: isAwaited,
                isUrgent: { [scheduler, id = start.id] in scheduler.isAwaitedByPlayer(id) })
            let isKept = space.isInCache
            let first = skip + Int(position - offset)
            let result = try chunk.withUnsafeBytes { bytes in
                let part = UnsafeRawBufferPointer(rebasing: bytes[first..<skip + count])
                return try lease.generation.store(part, at: position, in: &space)
            }
            switch result {
            case .stored(let range):
                resource.recordStorage(inMemory: !lease.generation.isKept)
                resource.stored(range, isKept: isKept, by: start.id)
                position = range.upperBound
            case .noSpace:
                guard await waitForSpace(connection) else { return false }
            case .retired:
                return false
            case .prefixInvalidated(let range):
                // The block was reported when it was discarded. It must count as missing now, so that the same request
                // is not repeated forever.
                resource.missing(range, of: lease.generation)
                return false
            }
            // A reader may have been waiting for the bytes that were stored.
            if position < end { isAwaited = scheduler.piece(start.id).isAwaited }
        }
        return true
    }

    /// Waits for space, until readers have moved on. Returns `false` if the transfer was cancelled.
    private func waitForSpace(_ connection: OriginConnection) async -> Bool {
        switch scheduler.lacksSpace(start.id) {
        case .stop: return false
        case .proceed: return true
        case .hold:
            connection.pause()
            await scheduler.hold(start.id)
            connection.resume()
        }
        return scheduler.mayStoreMore(start.id)
    }

    // MARK: - The end

    /// Reports the outcome to the scheduler, and to the cache's events.
    private func finish(_ outcome: Outcome) {
        switch outcome {
        case .ended:
            let text = "\(place): the origin's responses contain none of the requested bytes"
            finish(.ended, CacheError(.malformedResponse, text))
        case .restart:
            let text = "\(place): the origin's responses contradict each other"
            finish(.restart, CacheError(.malformedResponse, text))
        case .interrupted(let error, let retryAfter):
            // Stored bytes are used even though the origin did not validate them. Readers of missing bytes wait for the
            // retry.
            finish(
                .interrupted(retryAfter: retryAfter, jitter: clock.jitter), error,
                usesStale: resource.freshness.mayBeStale(after: Self.failure(error)))
        case .refused(let error, let isCredentialFailure):
            let usesStale =
                error.code == .originUnavailable && resource.freshness.mayBeStale(after: Self.failure(error))
            finish(.refused(isCredentialFailure: isCredentialFailure), error, usesStale: usesStale)
        }
    }

    private static func failure(_ error: CacheError) -> StoredFreshness.Failure {
        error.httpStatus.map { .status($0) } ?? .unreachable
    }

    private func finish(_ ending: Scheduler.Ending, _ error: CacheError, usesStale: Bool = false) {
        let error = error.about(resource.key, start.range)
        scheduler.ended(
            start.id, ending, error: error, usesStale: usesStale, now: clock.elapsed()
        ) { report($0, error) }
        if usesStale { resource.headers.wakeReaders() }
    }

    private func report(_ outcome: Planner.Outcome, _ error: CacheError) {
        switch outcome {
        case .none: break
        case .retries(let delay): resource.send(.retrying(after: delay, cause: error))
        case .failed: resource.send(.failed(error))
        }
    }
}

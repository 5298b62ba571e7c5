import Foundation
import HTTPRanges
import HTTPTypes

/// One request to the origin, from its first header field to its last landed byte.
///
/// Runs as one task on the blocking executor: what the network brings is written by the thread that took it. It asks
/// its scheduler before each piece, and tells it what landed and how it ended; it decides nothing about other bytes.
struct Transfer {
    let id: TransferID
    let lower: Int64
    let upper: Int64?
    let scheduler: Scheduler
    let services: CacheServices

    /// How a transfer came to its end.
    enum Outcome {
        case ended
        /// Nothing came of it, but the same need may be asked for anew at once.
        case restart
        case failed(CacheError, retryAfter: Duration?)
        case refused(CacheError)
    }

    func run() async -> Outcome {
        do {
            return try await exchange()
        } catch let error as UpstreamError {
            let text = "\(place): \(error.message)"
            if error.code == .cancelled { return .ended }
            let wrapped = CacheError(.originUnavailable, text, underlying: error)
            return error.isTransient ? .failed(wrapped, retryAfter: nil) : .refused(wrapped)
        } catch let error as CacheError {
            return .refused(error)
        } catch is CancellationError {
            return .ended
        } catch {
            return .refused(CacheError(.originUnavailable, "\(place): \(error)", underlying: error))
        }
    }

    private var place: String { "\(scheduler.address) bytes \(lower)-\(upper.map { "\($0 - 1)" } ?? "")" }

    private func exchange() async throws -> Outcome {
        let preconditions = scheduler.preconditions()
        let (source, sourceNumber) = try await scheduler.sourceAddress()
        var request = UpstreamRequest(url: source.url, fields: source.fields)
        request.fields[.acceptEncoding] = "identity"
        if let upper {
            request.fields[.range] = RangeHeader.text(for: lower..<upper)
        } else if lower > 0 {
            request.fields[.range] = RangeHeader.text(from: lower)
        }
        if preconditions.isValidation {
            if let tag = preconditions.stored?.version.validator.entityTag?.text { request.fields[.ifNoneMatch] = tag }
            if let date = preconditions.stored?.version.validator.lastModified { request.fields[.ifModifiedSince] = date }
        } else if let text = preconditions.stored?.version.validator.ifRangeText, request.fields[.range] != nil {
            request.fields[.ifRange] = text
        }
        services.events.send(.requested(lower: lower, upper: upper), key: scheduler.key, address: scheduler.address)
        scheduler.count { $0.originRequests += 1 }
        let asked = services.time.elapsed()
        let requestDate = services.time.now()
        let response = try await services.upstream.open(request)
        scheduler.note(roundTrip: services.time.elapsed() - asked)
        let facts = ResponseCacheability(
            policy: services.configuration.freshness, request: request.fields, response: response.head,
            requestDate: requestDate, responseDate: services.time.now())
        let decision = try scheduler.evaluate(
            response.head, from: id, askedFrom: request.fields[.range] == nil ? nil : lower, askedEnd: upper,
            facts: facts)
        switch decision {
        case .land(let landing):
            return try await stream(response, landing, asked: lower, isProof: true)
        case .newGeneration(let landing):
            let isProof = request.fields[.ifRange] == nil
            return try await stream(response, landing, asked: landing.offset == 0 ? 0 : nil, isProof: isProof)
        case .restart(let reason):
            scheduler.forgetGeneration(reason: reason, keeping: id)
            return .restart
        case .notModified:
            scheduler.validated(facts: facts)
            return .restart
        case .unsatisfiable(let length):
            guard let length else {
                if scheduler.learnEnd(at: lower) { return .restart }
                let text = "\(place): the origin says that the range lies past the end"
                return .refused(CacheError(.unsatisfiableRange, text, status: 416))
            }
            scheduler.learn(length: length)
            return .restart
        case .refuse(let refusal):
            return try await handle(refusal, sourceNumber)
        case nil:
            return .restart
        }
    }

    private func handle(_ refusal: PartialResponse.Refusal, _ sourceNumber: Int) async throws -> Outcome {
        let text = "\(place): the origin responded \(refusal.status): \(refusal.reason)"
        switch refusal.kind {
        case .credentials:
            let error = CacheError(.originRefused, text, status: refusal.status)
            let isFresh = try await scheduler.refreshAddress(sourceNumber, status: refusal.status)
            return isFresh ? .restart : .refused(error)
        case .retry(let after):
            let delay = after.map { $0.delay(now: services.time.secondsSince1970()) }
            return .failed(CacheError(.originUnavailable, text, status: refusal.status), retryAfter: delay)
        case .status:
            return .refused(CacheError(.originRefused, text, status: refusal.status))
        case .malformed:
            return .refused(CacheError(.malformedResponse, text, status: refusal.status))
        }
    }

    // MARK: - The body

    /// - Parameter isProof: Whether a whole body shows that the origin takes no notice of ranges; it does not where
    ///   `If-Range` asked for it.
    private func stream(
        _ response: UpstreamResponse, _ landing: PartialResponse.Landing, asked: Int64?, isProof: Bool
    ) async throws -> Outcome {
        var machine = StateMachine(offset: landing.offset, end: landing.end, asked: asked)
        let length = landing.version.length
        let isPart = lower > 0 || upper.map { $0 < length ?? .max } ?? false
        scheduler.streams(
            id, at: machine.firstLanding, end: landing.end, isWhole: response.head.status.code == 200,
            ignoredRange: isPart && isProof || landing.version.acceptsRanges == false)
        var body = response.body.makeAsyncIterator()
        var meter = RateMeter(now: services.time.elapsed())
        while let limit = await scheduler.permission(id) {
            meter.resume(at: services.time.elapsed())
            let chunk: UpstreamChunk?
            do {
                chunk = try await body.next()
            } catch {
                if landing.end == nil || machine.position < landing.end ?? 0 { throw error }
                return .ended
            }
            guard let chunk else { return end(of: machine.bodyEnded()) }
            scheduler.count { $0.bytesFromOrigin += Int64(chunk.count) }
            if let sample = meter.sample(bytes: chunk.count, at: services.time.elapsed()) {
                scheduler.note(bytes: sample.bytes, seconds: sample.seconds)
            }
            switch machine.chunk(count: chunk.count, limit: limit) {
            case .skip: continue
            case .stop: return .ended
            case .land(let skip, let count, let offset):
                guard try await land(chunk, skip: skip, count: count, at: offset) else { return .ended }
            }
            if machine.position == landing.end {
                // Taking the end of the body gives the connection back for the next request.
                _ = try? await body.next()
                return .ended
            }
        }
        return .ended
    }

    private func end(of action: StateMachine.EndAction) -> Outcome {
        switch action {
        case .complete: return .ended
        case .endOfResource(let length):
            scheduler.learn(length: length)
            return .ended
        case .cut(let offset):
            return .failed(
                CacheError(.originUnavailable, "\(place): the origin ended its response early, at byte \(offset)"),
                retryAfter: nil)
        }
    }

    /// Lands bytes on disk if there is room, in memory if somebody waits for them, and else waits for room.
    ///
    /// - Returns: False if the transfer has been cut meanwhile.
    private func land(_ chunk: UpstreamChunk, skip: Int, count: Int, at offset: Int64) async throws -> Bool {
        guard let generation = scheduler.currentGeneration(for: id) else { return false }
        let end = offset + Int64(count)
        var position = offset
        while position < end {
            guard let place = await place(for: position..<end, in: generation) else { return false }
            let part: Range<Int64>
            switch place {
            case .disk: part = position..<end
            // Block by block, so that bytes go to disk again as soon as it takes them.
            case .memory: part = position..<min(end, Block.roundDown(position) + Block.size)
            }
            let first = skip + Int(part.lowerBound - offset)
            do {
                let hasLanded = try chunk.withUnsafeBytes { bytes in
                    let bytes = UnsafeRawBufferPointer(rebasing: bytes[first..<first + part.count])
                    switch place {
                    case .disk(let disk, let reserved):
                        // Another transfer may have landed some of it since the room was reserved, or eviction have
                        // made more of it missing.
                        let landed = try disk.land(bytes, at: part.lowerBound, room: reserved)
                        services.capacity.release(generation.unclaim(reserved - (landed ?? 0)))
                        return landed != nil
                    case .memory:
                        try generation.landInMemory(bytes, at: part.lowerBound)
                        return true
                    }
                }
                guard hasLanded else { continue }
            } catch let bad as BadBlocks {
                // The stored beginning of this block is damaged: it has to come again, before its end.
                if case .disk(let disk, let reserved) = place { giveBack(reserved, of: part, disk, generation) }
                scheduler.lost(bad, of: generation)
                return false
            } catch {
                guard case .disk(let disk, let reserved) = place else { throw error }
                giveBack(reserved, of: part, disk, generation)
                scheduler.stopKeeping(generation, cause: error)
                continue
            }
            if case .disk = place { services.flusher.note(generation) }
            scheduler.landed(part, by: id, of: generation)
            if case .memory = place { scheduler.trimMemory(of: generation) }
            position = part.upperBound
        }
        return true
    }

    /// Landing failed: gives back the room of what has not landed after all.
    private func giveBack(_ reserved: Int64, of range: Range<Int64>, _ disk: MediaFile, _ generation: Generation) {
        services.capacity.release(generation.unclaim(min(reserved, disk.missingByteCount(in: range))))
    }

    private enum Place {
        /// On disk, with so many bytes of the capacity reserved.
        case disk(MediaFile, reserved: Int64)
        case memory
    }

    /// Where the bytes of `range` can go now; nil if the transfer has been cut while it waited for room.
    private func place(for range: Range<Int64>, in generation: Generation) async -> Place? {
        while true {
            guard let disk = generation.disk, !generation.mustLandInMemory(at: range.lowerBound) else { return .memory }
            let needed = disk.missingByteCount(in: range)
            var fits = services.capacity.reserve(needed)
            if !fits { fits = await services.evictor.reserve(needed) }
            if fits {
                if generation.claim(needed) { return .disk(disk, reserved: needed) }
                services.capacity.release(needed)
                return nil
            }
            if scheduler.isAwaited(id) {
                scheduler.reportFull()
                return .memory
            }
            guard await scheduler.waitForSpace(id) else { return nil }
        }
    }
}

/// Measures how fast a body comes, leaving out the time during which it was held.
struct RateMeter {
    private var bytes: Int64 = 0
    private var active = Duration.zero
    private var mark: Duration

    init(now: Duration) { mark = now }

    /// Time until now was spent landing or waiting for permission, which is not the line's.
    mutating func resume(at now: Duration) { mark = now }

    /// A chunk came at `now`; every 256 KiB or quarter of a second gives a sample.
    mutating func sample(bytes count: Int, at now: Duration) -> (bytes: Int64, seconds: Double)? {
        bytes += Int64(count)
        active += now - mark
        mark = now
        guard bytes >= 256 << 10 || active >= .milliseconds(250) else { return nil }
        defer {
            bytes = 0
            active = .zero
        }
        return (bytes, active / .seconds(1))
    }
}

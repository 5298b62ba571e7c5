package import ByteRanges
import HTTPRanges
import HTTPTypes
package import SpoolStorage

/// The received bytes that are not stored, and the reasons. Preloads and downloads report them as errors.
extension MediaResource {
    /// The reason why received bytes are not stored.
    package struct Loss: Sendable {
        /// The code of the error.
        package var code: CacheError.Code
        /// The end of the error's message, without the URL.
        package var reason: String
        /// Whether the bytes would be lost again if they were fetched again immediately.
        package var isPermanent = true
    }

    /// The maximum time to wait until another process has recorded received bytes, and the time between two checks.
    private static let recordingTime = (limit: Duration.seconds(3), step: Duration.milliseconds(25))

    /// Returns the part of `ranges` that is on disk or about to be written there.
    ///
    /// If the cache only reads its directory, another process stores the bytes. This method then waits for that
    /// process, for up to three seconds.
    ///
    /// - Throws: The same errors as ``storedResource()``.
    package func keptRanges(of ranges: ByteRangeSet) async throws -> ByteRangeSet {
        var kept = try await keptRanges().intersection(ranges)
        let context = try openResource.context
        guard context.configuration.isReadOnly else { return kept }
        let start = context.clock.elapsed()
        while kept != ranges, context.clock.elapsed() - start < Self.recordingTime.limit {
            try await context.clock.sleep(Self.recordingTime.step)
            // The other process may store a variant under a key that is not known here.
            for key in [key] + (try await store.variants(of: key)) {
                guard let record = try await store.resource(key) else { continue }
                let found = StoredResource(record).storedRanges.intersection(ranges)
                if found.byteCount > kept.byteCount { kept = found }
            }
        }
        return kept
    }

    /// The reason why nothing can be written to the directory; `nil` if it is writable, or if the cache is configured
    /// to only read it.
    ///
    /// - Throws: The same errors as ``storedResource()``.
    package var unwritableReason: CacheError? {
        get async throws {
            try openResource.context.configuration.isReadOnly ? nil : try await store.readOnlyReason
        }
    }

    /// Checks that the directory is writable, or that the bytes of a range are already stored. Otherwise, fetched bytes
    /// would be lost.
    ///
    /// - Throws: `CacheError` with the reason why the directory is not writable, and the errors of
    ///   ``storedResource()``.
    package func checkStorable(_ range: MediaRange) async throws {
        guard let cause = try await unwritableReason else { return }
        if let stored = try await storedResource(), let length = stored.length {
            var wanted = 0..<length
            if case .bytes(let part) = range { wanted = part.clamped(to: wanted) }
            if stored.storedRanges.contains(wanted) { return }
        }
        throw lossError(stored: 0, of: 0, because: Loss(code: cause.code, reason: cause.message))
    }

    /// The reason why received bytes of the open version are not stored; `nil` if they are stored, or if no version is
    /// open.
    ///
    /// - Throws: The same errors as ``storedResource()``.
    package var openLoss: Loss? {
        get async throws { resource?.generation?.isKept == false ? try await loss(ofByteCount: 1) : nil }
    }

    /// Returns the error for received bytes that are not stored.
    ///
    /// - Parameters:
    ///   - count: The number of received bytes that are stored.
    ///   - total: The number of received bytes.
    ///   - loss: The reason, or `nil` if it is unknown.
    package func lossError(stored count: Int64, of total: Int64, because loss: Loss?) -> CacheError {
        var text = "\(source.redactedURL) can't be stored"
        if count > 0 || loss == nil {
            text = "\(source.redactedURL): only \(count.grouped) of \(total.counted("byte")) could be stored"
        }
        return CacheError(loss?.code ?? .incomplete, loss.map { "\(text): \($0.reason)" } ?? text, key: key)
    }

    /// Returns the reason why received bytes are not stored; `nil` if it is unknown.
    ///
    /// - Parameter missing: The number of received bytes that are not stored.
    /// - Throws: The same errors as ``storedResource()``.
    package func loss(ofByteCount missing: Int64) async throws -> Loss? {
        let store = try await store
        if let cause = try await unwritableReason { return Loss(code: cause.code, reason: cause.message) }
        let context = try openResource.context
        let generation = resource?.generation
        if let generation, generation.isError {
            let reason = "the origin sent a web page or an error message, not media"
            return Loss(code: .malformedResponse, reason: reason)
        }
        let isReadOnly = context.configuration.isReadOnly
        if let generation, !generation.isKept, isReadOnly || context.configuration.freshness == .http,
            let refusal = generation.storingRefusal(
                hasAuthorization: credentials.source.headerFields[.authorization] != nil)
        {
            return Loss(code: .incomplete, reason: refusal)
        }
        if isReadOnly {
            let reason = "the process that uses the cache did not store it; the capacity may be too small"
            return Loss(code: .incomplete, reason: reason)
        }
        if let cause = generation?.lossCause, cause.code != .capacityExceeded {
            return Loss(code: cause.code, reason: cause.message, isPermanent: false)
        }
        guard let capacity = store.capacity, store.usedBytes + missing > capacity else { return nil }
        let reason = "the capacity of \(capacity.counted("byte")) is too small, or in use by other media"
        return Loss(code: .capacityExceeded, reason: reason, isPermanent: false)
    }
}

extension Generation {
    /// Returns why the header fields do not allow a shared cache to store the response (RFC 9111 §3). The result is
    /// `nil` if they allow it, or are unknown.
    ///
    /// - Parameter hasAuthorization: Whether the request contained `Authorization`.
    fileprivate func storingRefusal(hasAuthorization: Bool) -> String? {
        guard let fields = storedFreshness?.head?.fields else { return nil }
        let control = CacheControl.governing(fields).control
        if control.noStore { return "the origin does not allow it (Cache-Control: no-store)" }
        if control.isPrivate { return "the origin does not allow it in a shared cache (Cache-Control: private)" }
        if Vary(fields: fields, request: [:]).isAny { return "the response matches no other request (Vary: *)" }
        guard !control.allowsStoring(shared: true, hasAuthorization: hasAuthorization) else { return nil }
        return "the origin does not allow it for requests with Authorization (Cache-Control without public)"
    }
}

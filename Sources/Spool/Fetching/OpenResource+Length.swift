import HTTPRanges
import HTTPTypes
import SpoolStorage

extension OpenResource {
    /// Asks the origin for the last `count` bytes, to learn where they stand: for an origin that tells no total.
    ///
    /// Only the head is taken. A response that is not of the version that is open tells nothing.
    ///
    /// - Returns: The length of the whole, now known; nil if the response does not tell it.
    /// - Throws: `CacheError` when the origin does not respond.
    func askLength(_ credentials: SourceCredentials, last count: Int64, _ priority: Priority) async throws -> Int64? {
        let current = generation
        let patience = OriginState.Patience(priority, context.configuration.retry, context.clock)
        let response: UpstreamResponse
        let connection: OriginConnection
        do {
            let resolved = try await credentials.resolved().request
            var request = UpstreamRequest(url: resolved.url, headerFields: resolved.headerFields)
            request.followsRedirects = context.configuration.followsRedirects
            request.headerFields[.acceptEncoding] = "identity"
            request.headerFields[.range] = "bytes=-\(max(count, 1))"
            connection = try await context.conductor.origin(of: request.url).connect(priority, patience)
            serving.asked()
            response = try await context.upstream.open(request)
        } catch let error as UpstreamError {
            if error.code == .cancelled { throw CancellationError() }
            let text = "\(address): \(error.message(after: address))"
            throw CacheError(.originUnavailable, text, key: key, underlying: error)
        } catch let error as OriginState.AllConnectionsBusy {
            let text = "\(address): all connections to the origin have been busy for \(error.limit)"
            throw CacheError(.originUnavailable, text, key: key, underlying: error)
        }
        defer { connection.end() }
        guard response.head.status == .partialContent, let current,
            let text = response.head.headerFields[.contentRange], let content = ContentRange(parsing: text),
            let end = content.length ?? content.range?.upperBound, end <= Block.offsetLimit,
            !Validator(fields: response.head.headerFields).contradicts(current.resourceVersion.validator)
        else { return nil }
        let isPlausible = scheduler.ask { state -> (Bool, [Scheduler.StateMachine.Action]) in
            guard state.lease?.generation === current else { return (false, []) }
            return state.machine.lengthLearnt(end)
        }
        guard isPlausible else { return nil }
        current.learn(length: end)
        checkComplete()
        return end
    }
}

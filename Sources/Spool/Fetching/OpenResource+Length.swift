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
        let exchange = OriginExchange(credentials: credentials, context: context)
        func ask() async throws -> OriginExchange.Opened {
            try await exchange.open(as: priority) { request in
                serving.asked()
                request.headerFields[.range] = "bytes=-\(max(count, 1))"
            }
        }
        var opened: OriginExchange.Opened
        do {
            opened = try await ask()
            if try await exchange.refreshesCredentials(after: opened) {
                opened.connection.end()
                opened = try await ask()
            }
        } catch {
            let reported = exchange.reported(error, at: address)
            throw (reported as? CacheError)?.about(key) ?? reported
        }
        defer { opened.connection.end() }
        let response = opened.response
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

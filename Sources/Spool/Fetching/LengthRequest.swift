import ByteRanges
import HTTPRanges
import HTTPTypes
import SpoolScheduling
import SpoolStorage

/// A request for the last bytes of a resource, to find its length. It is sent if the origin does not send the total
/// length.
struct LengthRequest {
    let resource: OpenResource

    /// Requests the last `count` bytes, and reads only the response headers.
    ///
    /// - Returns: The length, which is also recorded in the resource. The result is `nil` if the response does not
    ///   contain the length, or does not belong to the current version.
    /// - Throws: `CacheError` if the request fails without a response.
    func length(
        _ credentials: SourceCredentials, last count: Int64, _ priority: Priority
    ) async throws -> Int64? {
        let current = resource.generation
        let exchange = OriginExchange(credentials: credentials, context: resource.context)
        func ask() async throws -> OriginExchange.Opened {
            try await exchange.open(as: priority) { request in
                resource.serving.recordRequest()
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
            let reported = exchange.reported(error, at: resource.redactedURL)
            throw (reported as? CacheError)?.about(resource.key) ?? reported
        }
        defer { opened.connection.end() }
        let fields = opened.response.head.headerFields
        guard opened.response.head.status == .partialContent, let current, let text = fields[.contentRange],
            let content = ContentRange(parsing: text), let end = content.length ?? content.range?.upperBound,
            end <= Block.offsetLimit, !Validator(fields: fields).contradicts(current.resourceVersion.validator)
        else { return nil }
        guard resource.scheduler.recordLength(end, of: current) else { return nil }
        current.setLength(end)
        resource.checkComplete()
        return end
    }
}

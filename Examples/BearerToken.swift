import HTTPTypes
import SpoolAVFoundation

/// Returns media that requires a bearer token. The token is requested before its first use, and again after it expires
/// or is rejected.
func source(
    of url: URL, token: @escaping @Sendable () async throws -> (text: String, expiration: Date)
) -> MediaSource {
    MediaSource(url: url) { _ in
        let token = try await token()
        return ResolvedRequest(
            url: url, headerFields: [.authorization: "Bearer \(token.text)"], expiration: token.expiration)
    }
}

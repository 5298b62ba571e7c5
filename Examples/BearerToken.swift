import HTTPTypes
import SpoolAVFoundation

/// Media that needs a bearer token: asked for when it is first needed, when it has expired, and when it was refused.
func source(
    of url: URL, token: @escaping @Sendable () async throws -> (text: String, expiration: Date)
) -> MediaSource {
    MediaSource(url: url) { _ in
        let token = try await token()
        return ResolvedRequest(
            url: url, headerFields: [.authorization: "Bearer \(token.text)"], expiration: token.expiration)
    }
}

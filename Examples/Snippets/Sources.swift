import SpoolAVFoundation
import SpoolSources

// An example from docs/guides/credentials.md.

/// The access of an app to the tokens of its user's account.
private protocol Tokens: Sendable {
    var expiration: Date? { get }
    func refreshed() async throws -> (token: String, expiration: Date?)
}

@MainActor
private func item(at url: URL, _ tokens: some Tokens, in cache: MediaCache) -> (AVPlayerItem, HeaderProvider) {
    let account = HeaderProvider.bearer(expiration: tokens.expiration) { try await tokens.refreshed() }
    let item = AVPlayerItem(caching: account.media(at: url), in: cache)
    return (item, account)
}

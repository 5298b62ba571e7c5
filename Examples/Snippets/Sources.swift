import SpoolAVFoundation
import SpoolSources

// An example from docs/guides/credentials.md.

/// The access of an app to the tokens of its user's account.
private protocol Tokens: Sendable {
    var expiration: Date? { get }
    func refreshed() async throws -> (token: String, expiration: Date?)
}

/// Returns a file of the account, as in docs/sources.md.
private func googleDrive(_ id: String, of account: HeaderProvider) -> MediaSource {
    account.media(at: URL(string: "https://www.googleapis.com/drive/v3/files/\(id)?alt=media")!)
}

@MainActor
private func item(_ id: String, _ tokens: some Tokens, in cache: MediaCache) -> (AVPlayerItem, HeaderProvider) {
    let account = HeaderProvider.bearer(expiration: tokens.expiration) { try await tokens.refreshed() }
    let item = AVPlayerItem(caching: googleDrive(id, of: account), in: cache)
    return (item, account)
}

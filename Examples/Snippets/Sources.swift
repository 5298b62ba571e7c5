import SpoolAVFoundation
import SpoolSources

// A piece of docs/sources.md.

/// What an app knows of its user's account.
private protocol Tokens: Sendable {
    var expiration: Date? { get }
    func refreshed() async throws -> (token: String, expiration: Date?)
}

/// A file of the account, as docs/sources.md has it.
private func googleDrive(_ id: String, of account: HeaderSource) -> MediaSource {
    account.media(at: URL(string: "https://www.googleapis.com/drive/v3/files/\(id)?alt=media")!)
}

@MainActor
private func item(_ id: String, _ tokens: some Tokens, in cache: MediaCache) -> (AVPlayerItem, HeaderSource) {
    let account = HeaderSource.bearer(expiration: tokens.expiration) { try await tokens.refreshed() }
    let item = AVPlayerItem(caching: googleDrive(id, of: account), in: cache)
    return (item, account)
}

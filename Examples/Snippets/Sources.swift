import SpoolAVFoundation
import SpoolSources

// Examples from docs/guides/credentials.md.

/// Access to the tokens for the user's account.
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

private func sources(at root: URL, user: String, password: String) async throws -> [MediaSource] {
    let account = HeaderProvider.basic(user: user, password: password)
    let library = WebDAV(rootURL: root, account: account, upstream: .urlSession())
    let items = try await library.contents(of: "Music").filter { !$0.isFolder }
    let sources = items.map { library.media(at: $0.path) }
    return sources
}

private func source(withKey id: String, _ secret: String) throws -> MediaSource {
    let bucket = try S3Bucket("media", region: "eu-central-1") { _ in
        S3Bucket.Credentials(accessKeyID: id, secretAccessKey: secret)
    }
    let source = bucket.media("Music/track.mp3")
    return source
}

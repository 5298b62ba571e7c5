public import Foundation
import HTTPTypes
public import Spool

/// Media sources of an account with HTTP's Digest authentication (RFC 7616; MD5 and SHA-256, `qop=auth`).
///
/// The server's challenge is asked for once for all files of the account, and anew when what came of it is refused, as
/// when its nonce has expired. May be used from any task.
public final class DigestSource: Sendable {
    private let resolution: SharedResolution<DigestChallenge>
    private let user: String
    private let password: String

    /// - Parameters:
    ///   - user: The user's name.
    ///   - password: The password.
    ///   - address: Any address of the account: what is asked, without credentials, for the challenge.
    ///   - upstream: What asks for it.
    public init(user: String, password: String, challengedAt address: URL, over upstream: any Upstream) {
        self.user = user
        self.password = password
        resolution = SharedResolution(now: { Date() }, expiration: { _ in nil }) { _ in
            var request = UpstreamRequest(url: address)
            request.method = .head
            let response = try await upstream.open(request)
            let place = Requester.place(address)
            guard response.head.status.code == 401 else {
                throw SourceError(
                    "\(place): asked without credentials, the server responded with \(response.head.status.code), not with a challenge",
                    status: response.head.status.code)
            }
            let fields = response.head.headerFields[values: .wwwAuthenticate]
            guard let challenge = DigestChallenge(fields) else {
                throw SourceError("\(place): the server has no Digest challenge that is known", status: 401)
            }
            return challenge
        }
    }

    /// A media file of the account; its parameters are those of ``HeaderSource/media(at:key:)``.
    public func media(at url: URL, key: CacheKey? = nil) -> MediaSource {
        let share = resolution.share()
        return MediaSource(url: url, key: key) { [user, password] reason in
            let challenge = try await share.value(reason)
            let target = Self.target(of: url)
            let authorization = challenge.authorization(user: user, password: password, method: "GET", target: target)
            return ResolvedRequest(url: url, headerFields: [.authorization: authorization])
        }
    }

    /// Path and query as they are sent.
    private static func target(of url: URL) -> String {
        let parts = URLComponents(url: url, resolvingAgainstBaseURL: true)
        let path = parts?.percentEncodedPath ?? ""
        return (path.isEmpty ? "/" : path) + (parts?.percentEncodedQuery.map { "?" + $0 } ?? "")
    }
}

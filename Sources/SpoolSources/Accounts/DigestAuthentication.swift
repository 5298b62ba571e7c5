import Crypto
public import Foundation
import HTTPTypes
public import Spool

/// An account with HTTP Digest authentication, which creates media sources (RFC 7616; MD5 and SHA-256, `qop=auth`).
///
/// The server's challenge is requested once for all media of the account. It is requested again if the server rejects a
/// response to it, for example because the nonce has expired. The type may be used from any task.
public final class DigestAuthentication: Sendable {
    private let resolution: SharedResolution<DigestChallenge>
    private let user: String
    private let password: String

    /// Creates an account with a user name and a password.
    ///
    /// - Parameters:
    ///   - user: The user name.
    ///   - password: The password.
    ///   - url: Any URL of the account. It is requested without credentials to get the challenge.
    ///   - upstream: The transport for the challenge request.
    public init(user: String, password: String, challengeURL url: URL, upstream: any Upstream) {
        self.user = user
        self.password = password
        resolution = SharedResolution(now: { Date() }, expiration: { _ in nil }) { _ in
            var request = UpstreamRequest(url: url)
            request.method = .head
            let response = try await upstream.open(request)
            let place = AuthenticatedClient.place(url)
            guard response.head.status.code == 401 else {
                throw SourceError(
                    "\(place): the server responded to a request without credentials with status "
                        + "\(response.head.status.code) instead of 401",
                    status: response.head.status.code)
            }
            let fields = response.head.headerFields[values: .wwwAuthenticate]
            guard let challenge = DigestChallenge(fields) else {
                throw SourceError("\(place): the server sent no supported Digest challenge", status: 401)
            }
            return challenge
        }
    }

    /// Returns a source for media of the account; see ``HeaderProvider/media(at:key:)`` for the parameters.
    public func media(at url: URL, key: CacheKey? = nil) -> MediaSource {
        let share = resolution.makeShare()
        return MediaSource(url: url, key: key) { [user, password] reason in
            let challenge = try await share.value(reason)
            let target = Self.target(of: url)
            let authorization = challenge.authorization(user: user, password: password, method: "GET", target: target)
            return ResolvedRequest(url: url, headerFields: [.authorization: authorization])
        }
    }

    /// Returns the path and query, as sent to the server.
    private static func target(of url: URL) -> String {
        let parts = URLComponents(url: url, resolvingAgainstBaseURL: true)
        let path = parts?.percentEncodedPath ?? ""
        return (path.isEmpty ? "/" : path) + (parts?.percentEncodedQuery.map { "?" + $0 } ?? "")
    }
}

/// A Digest challenge from a server (RFC 7616 §3.3).
struct DigestChallenge: Sendable, Equatable {
    enum Algorithm: String, Sendable {
        case md5 = "MD5"
        case sha256 = "SHA-256"

        func hash(_ text: String) -> String {
            let data = Data(text.utf8)
            func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
                bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
            }
            return switch self {
            case .md5: hexadecimal(Insecure.MD5.hash(data: data))
            case .sha256: hexadecimal(SHA256.hash(data: data))
            }
        }
    }

    var realm: String
    var nonce: String
    var opaque: String?
    var algorithm: Algorithm
    /// Whether the server supports `qop=auth`. Older servers do not (RFC 2069).
    var hasQuality: Bool

    /// Parses the strongest supported challenge in `WWW-Authenticate` fields. The result is `nil` if there is none.
    init?(_ fields: [String]) {
        let known = fields.flatMap(Self.challenges).compactMap(Self.init(parameters:))
        guard let best = known.first(where: { $0.algorithm == .sha256 }) ?? known.first else { return nil }
        self = best
    }

    private init?(parameters: [String: String]) {
        guard let realm = parameters["realm"], let nonce = parameters["nonce"],
            let algorithm = Algorithm(rawValue: (parameters["algorithm"] ?? "MD5").uppercased())
        else { return nil }
        let qualities = parameters["qop"]?.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
        if let qualities, !qualities.contains(where: { $0.lowercased() == "auth" }) { return nil }
        self.realm = realm
        self.nonce = nonce
        self.opaque = parameters["opaque"]
        self.algorithm = algorithm
        self.hasQuality = qualities != nil
    }

    /// Returns the value of the `Authorization` field for a request.
    ///
    /// - Parameters:
    ///   - target: The path and query of the request.
    ///   - clientNonce: A fixed value for tests. By default, a random value is used.
    func authorization(
        user: String, password: String, method: String, target: String, clientNonce: String? = nil
    ) -> String {
        let (count, cnonce) = ("00000001", clientNonce ?? String(UInt64.random(in: .min ... .max), radix: 16))
        let secret = algorithm.hash("\(user):\(realm):\(password)")
        let request = algorithm.hash("\(method):\(target)")
        let middle = hasQuality ? "\(nonce):\(count):\(cnonce):auth" : nonce
        let response = algorithm.hash("\(secret):\(middle):\(request)")
        var parts = [
            "username=\(Self.quoted(user))", "realm=\(Self.quoted(realm))", "nonce=\(Self.quoted(nonce))",
            "uri=\(Self.quoted(target))", "response=\"\(response)\"", "algorithm=\(algorithm.rawValue)",
        ]
        if hasQuality { parts += ["qop=auth", "nc=\(count)", "cnonce=\"\(cnonce)\""] }
        if let opaque { parts.append("opaque=\(Self.quoted(opaque))") }
        return "Digest " + parts.joined(separator: ", ")
    }

    private static func quoted(_ text: String) -> String {
        "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }

    /// Returns the parameters of each Digest challenge in a field (RFC 9110 §11.6.1), with names in lower case. Invalid
    /// parts are ignored.
    private static func challenges(in field: String) -> [[String: String]] {
        var result: [[String: String]] = []
        var rest = Substring(field)
        var isDigest = false
        while !rest.isEmpty {
            rest = rest.drop { $0 == " " || $0 == "\t" || $0 == "," }
            let word = rest.prefix { $0 != " " && $0 != "\t" && $0 != "=" && $0 != "," }
            if word.isEmpty {
                rest = rest.dropFirst()
                continue
            }
            rest = rest.dropFirst(word.count)
            let after = rest.drop { $0 == " " || $0 == "\t" }
            if after.first == "=" {
                rest = after.dropFirst().drop { $0 == " " || $0 == "\t" }
                let value = value(&rest)
                if isDigest, !result.isEmpty { result[result.count - 1][word.lowercased()] = value }
            } else {
                isDigest = word.lowercased() == "digest"
                if isDigest { result.append([:]) }
            }
        }
        return result
    }

    private static func value(_ rest: inout Substring) -> String {
        guard rest.first == "\"" else {
            let token = rest.prefix { $0 != "," && $0 != " " && $0 != "\t" }
            rest = rest.dropFirst(token.count)
            return String(token)
        }
        var (text, isEscaped) = ("", false)
        rest = rest.dropFirst()
        while let character = rest.popFirst() {
            if isEscaped || character != "\\" && character != "\"" {
                text.append(character)
                isEscaped = false
            } else if character == "\\" {
                isEscaped = true
            } else {
                break
            }
        }
        return text
    }
}

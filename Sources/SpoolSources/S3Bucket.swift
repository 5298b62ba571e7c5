import Crypto
public import Foundation
public import Spool

/// The objects of a bucket in S3, or in a compatible service, as media sources with signed URLs.
///
/// Each URL is signed on this device for a limited time. A new URL is signed before the previous one expires, and when
/// the service rejects the previous one. The cache key of an object consists only of the endpoint, the bucket and the
/// object's key.
///
/// ```swift
/// let bucket = S3Bucket("films", region: "eu-central-1") { _ in try await session.credentials() }
/// let item = AVPlayerItem(caching: bucket.media("2026/holiday.mp4"), in: cache)
/// ```
public struct S3Bucket: Sendable {
    /// The credentials for signing requests.
    public struct Credentials: Sendable {
        /// The public part of the access key.
        public var accessKeyID: String
        /// The secret part of the access key, which is never sent.
        public var secretAccessKey: String
        /// The session token of temporary credentials.
        public var sessionToken: String?
        /// The time at which temporary credentials expire.
        public var expiration: Date?

        /// Creates credentials for signing requests.
        public init(accessKeyID: String, secretAccessKey: String, sessionToken: String? = nil, expiration: Date? = nil)
        {
            self.accessKeyID = accessKeyID
            self.secretAccessKey = secretAccessKey
            self.sessionToken = sessionToken
            self.expiration = expiration
        }
    }

    /// The position of the bucket's name in a URL.
    #if hasAttribute(nonexhaustive)
    @nonexhaustive
    #endif
    public enum Addressing: Sendable {
        /// The name precedes the endpoint's host: `films.s3.eu-central-1.amazonaws.com/…`.
        case virtualHost
        /// The name is at the start of the path: `s3.eu-central-1.amazonaws.com/films/…`.
        case path
    }

    private let address: URL
    private let region: String
    private let lifetime: Int
    private let now: @Sendable () -> Date
    private let resolution: SharedResolution<Credentials>

    /// Creates a client for the objects of an existing bucket.
    ///
    /// - Parameters:
    ///   - name: The bucket's name.
    ///   - region: The region for which requests are signed.
    ///   - endpoint: The URL of the service. The default, `nil`, is Amazon's endpoint in `region`.
    ///   - addressing: The position of the bucket's name in URLs.
    ///   - lifetime: The validity of a signed URL, in seconds, from 1 to 604,800 (a week).
    ///   - now: A function that returns the current date.
    ///   - credentials: A function that returns the credentials. It is called when credentials are first needed, have
    ///     expired, or have been rejected, but never concurrently for the same bucket.
    /// - Throws: ``SourceError`` if the endpoint and the name do not form a valid URL.
    public init(
        _ name: String, region: String, endpoint: URL? = nil, addressing: Addressing = .virtualHost,
        lifetime: Int = 3600, now: @escaping @Sendable () -> Date = { Date() },
        credentials: @escaping @Sendable (MediaSource.ResolutionReason) async throws -> Credentials
    ) throws {
        var parts = endpoint.flatMap { URLComponents(url: $0, resolvingAgainstBaseURL: true) } ?? URLComponents()
        if endpoint == nil { (parts.scheme, parts.host) = ("https", "s3.\(region).amazonaws.com") }
        if parts.percentEncodedPath.hasSuffix("/") { parts.percentEncodedPath.removeLast() }
        switch addressing {
        case .virtualHost: parts.host = parts.host.map { "\(name).\($0)" }
        case .path: parts.percentEncodedPath += "/" + S3Signer.encoded(name)
        }
        guard let address = parts.url, parts.host?.isEmpty == false else {
            throw SourceError("the endpoint and the bucket “\(name)” do not form a valid URL")
        }
        self.address = address
        self.region = region
        self.lifetime = min(max(lifetime, 1), 604_800)
        self.now = now
        resolution = SharedResolution(now: now, expiration: \.expiration, resolve: credentials)
    }

    /// Returns a media source for an object.
    ///
    /// - Parameter object: The object's key, such as `2026/holiday.mp4`.
    public func media(_ object: String) -> MediaSource {
        let path = object.split(separator: "/", omittingEmptySubsequences: false).map { S3Signer.encoded(String($0)) }
        // `appending(path:)` follows different encoding rules, but the URL that is sent must match the signed URL.
        let url = URL(string: address.absoluteString + "/" + path.joined(separator: "/")) ?? address
        let share = resolution.makeShare()
        return MediaSource(url: url) { [region, lifetime, now] reason in
            let credentials = try await share.value(reason)
            let date = now()
            let end = min(date.addingTimeInterval(Double(lifetime)), credentials.expiration ?? .distantFuture)
            let signer = S3Signer(credentials, region: region)
            let signed = signer.presigned(url, at: date, expiresIn: lifetime)
            // The URL is treated as expired slightly before the service's limit, because clocks differ and a request
            // takes time.
            let margin = min(30, end.timeIntervalSince(date) / 10)
            return ResolvedRequest(url: signed, expiration: end.addingTimeInterval(-margin))
        }
    }
}

/// A signer of URLs for `GET` requests with AWS Signature Version 4 (docs.aws.amazon.com, “Authenticating Requests:
/// Using Query Parameters”).
struct S3Signer {
    private let credentials: S3Bucket.Credentials
    private let region: String

    init(_ credentials: S3Bucket.Credentials, region: String) {
        self.credentials = credentials
        self.region = region
    }

    /// Returns `url` with a signature that is valid for `seconds`, starting at `date`. The URL must not have a query.
    func presigned(_ url: URL, at date: Date, expiresIn seconds: Int) -> URL {
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true), let host = parts.percentEncodedHost
        else { return url }
        let isDefault = parts.port == nil || parts.port == ["http": 80, "https": 443][parts.scheme ?? ""]
        let authority = isDefault ? host : "\(host):\(parts.port ?? 0)"
        let (day, time) = Self.stamp(date)
        let scope = "\(day)/\(region)/s3/aws4_request"
        var query = [
            ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"), ("X-Amz-Credential", "\(credentials.accessKeyID)/\(scope)"),
            ("X-Amz-Date", time), ("X-Amz-Expires", "\(seconds)"), ("X-Amz-SignedHeaders", "host"),
        ]
        if let token = credentials.sessionToken { query.append(("X-Amz-Security-Token", token)) }
        let sorted = query.map { "\(Self.encoded($0.0))=\(Self.encoded($0.1))" }.sorted().joined(separator: "&")
        let path = parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath
        let request = ["GET", path, sorted, "host:\(authority)", "", "host", "UNSIGNED-PAYLOAD"].joined(separator: "\n")
        let toSign = ["AWS4-HMAC-SHA256", time, scope, Self.hexadecimal(SHA256.hash(data: Data(request.utf8)))]
            .joined(separator: "\n")
        var key = SymmetricKey(data: Data("AWS4\(credentials.secretAccessKey)".utf8))
        for word in [day, region, "s3", "aws4_request"] { key = SymmetricKey(data: Self.code(word, key)) }
        parts.percentEncodedQuery = sorted + "&X-Amz-Signature=" + Self.hexadecimal(Self.code(toSign, key))
        return parts.url ?? url
    }

    private static func code(_ text: String, _ key: SymmetricKey) -> HMAC<SHA256>.MAC {
        HMAC<SHA256>.authenticationCode(for: Data(text.utf8), using: key)
    }

    private static func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// Returns the day and the time in UTC, such as `20130524` and `20130524T000000Z`.
    private static func stamp(_ date: Date) -> (day: String, time: String) {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        let parts = calendar.dateComponents([.year, .month, .day, .hour, .minute, .second], from: date)
        func digits(_ value: Int?, _ count: Int) -> String {
            let text = String(value ?? 0)
            return String(repeating: "0", count: max(0, count - text.count)) + text
        }
        let day = digits(parts.year, 4) + digits(parts.month, 2) + digits(parts.day, 2)
        return (day, day + "T" + digits(parts.hour, 2) + digits(parts.minute, 2) + digits(parts.second, 2) + "Z")
    }

    /// Returns `text` with all characters percent-encoded except the unreserved characters of RFC 3986. The digits are
    /// upper-case, as the signature requires.
    static func encoded(_ text: String) -> String {
        var result = ""
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                result.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                let digits = String(byte, radix: 16, uppercase: true)
                result += "%" + (byte < 16 ? "0" : "") + digits
            }
        }
        return result
    }
}

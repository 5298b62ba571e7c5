public import Foundation
public import Spool

/// The objects of a bucket at S3, or at a service that speaks its API, as media sources with signed addresses.
///
/// Each address is signed on this device for a time, and anew before that has passed or when it is refused; the name that
/// an object is kept under is made of endpoint, bucket and object alone.
///
/// ```swift
/// let bucket = S3Bucket("films", region: "eu-central-1") { _ in try await session.credentials() }
/// let item = AVPlayerItem(caching: bucket.media("2026/holiday.mp4"), in: cache)
/// ```
public struct S3Bucket: Sendable {
    /// What requests are signed with.
    public struct Credentials: Sendable {
        /// The public part of the key.
        public var accessKeyID: String
        /// The secret part, which is never sent.
        public var secretAccessKey: String
        /// The token of temporary credentials.
        public var sessionToken: String?
        /// When temporary credentials expire.
        public var expiration: Date?

        /// Creates credentials.
        public init(accessKeyID: String, secretAccessKey: String, sessionToken: String? = nil, expiration: Date? = nil)
        {
            self.accessKeyID = accessKeyID
            self.secretAccessKey = secretAccessKey
            self.sessionToken = sessionToken
            self.expiration = expiration
        }
    }

    /// Where the bucket's name stands in an address.
    #if hasAttribute(nonexhaustive)
    @nonexhaustive
    #endif
    public enum Addressing: Sendable {
        /// Before the endpoint's host: `films.s3.eu-central-1.amazonaws.com/…`.
        case virtualHost
        /// First in the path: `s3.eu-central-1.amazonaws.com/films/…`.
        case path
    }

    private let address: URL
    private let region: String
    private let lifetime: Int
    private let now: @Sendable () -> Date
    private let resolution: SharedResolution<Credentials>

    /// - Parameters:
    ///   - name: The bucket's name.
    ///   - region: The region that requests are signed for.
    ///   - endpoint: The service; nil: Amazon's in `region`.
    ///   - addressing: Where the bucket's name stands.
    ///   - lifetime: For how many seconds an address is signed, 1 to 604,800 (a week).
    ///   - now: The calendar.
    ///   - credentials: Gives what to sign with; called when first needed, when it has expired, and when the service
    ///     refuses what was signed with it; never twice at once for one bucket.
    /// - Throws: ``SourceError`` if endpoint and name make no address.
    public init(
        _ name: String, region: String, endpoint: URL? = nil, addressing: Addressing = .virtualHost,
        lifetime: Int = 3600, now: @escaping @Sendable () -> Date = { Date() },
        credentials: @escaping @Sendable (MediaSource.Reason) async throws -> Credentials
    ) throws {
        var parts = endpoint.flatMap { URLComponents(url: $0, resolvingAgainstBaseURL: true) } ?? URLComponents()
        if endpoint == nil { (parts.scheme, parts.host) = ("https", "s3.\(region).amazonaws.com") }
        if parts.percentEncodedPath.hasSuffix("/") { parts.percentEncodedPath.removeLast() }
        switch addressing {
        case .virtualHost: parts.host = parts.host.map { "\(name).\($0)" }
        case .path: parts.percentEncodedPath += "/" + S3Signer.encoded(name)
        }
        guard let address = parts.url, parts.host?.isEmpty == false else {
            throw SourceError("no address can be made of the bucket “\(name)” and its endpoint")
        }
        self.address = address
        self.region = region
        self.lifetime = min(max(lifetime, 1), 604_800)
        self.now = now
        resolution = SharedResolution(now: now, expiration: \.expiration, resolve: credentials)
    }

    /// An object as a media source.
    ///
    /// - Parameter object: The object's key, such as `2026/holiday.mp4`.
    public func media(_ object: String) -> MediaSource {
        let path = object.split(separator: "/", omittingEmptySubsequences: false).map { S3Signer.encoded(String($0)) }
        // Not `appending(path:)`, which encodes by other rules: what is signed is what is sent.
        let url = URL(string: address.absoluteString + "/" + path.joined(separator: "/")) ?? address
        let share = resolution.share()
        return MediaSource(url: url) { [region, lifetime, now] reason in
            let credentials = try await share.value(reason)
            let date = now()
            let end = min(date.addingTimeInterval(Double(lifetime)), credentials.expiration ?? .distantFuture)
            let signer = S3Signer(credentials, region: region)
            let signed = signer.presigned(url, at: date, expiresIn: lifetime)
            // A little earlier than the service thinks: clocks differ, and a request takes its time.
            let margin = min(30, end.timeIntervalSince(date) / 10)
            return ResolvedRequest(url: signed, expiration: end.addingTimeInterval(-margin))
        }
    }
}

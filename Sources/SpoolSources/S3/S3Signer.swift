import Crypto
import Foundation

/// Signs addresses for `GET` as AWS Signature Version 4 says (docs.aws.amazon.com, “Authenticating Requests: Using Query
/// Parameters”).
struct S3Signer {
    private let credentials: S3Bucket.Credentials
    private let region: String

    init(_ credentials: S3Bucket.Credentials, region: String) {
        self.credentials = credentials
        self.region = region
    }

    /// `url`, which has no query, signed for so many seconds from `date` on.
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

    /// Day and time in UTC: `20130524`, `20130524T000000Z`.
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

    /// Encoded as the signature wants it: all but the unreserved characters of RFC 3986, in capitals.
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

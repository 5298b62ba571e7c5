import Observation
import SpoolAVFoundation
import SpoolSources

/// A key to a bucket, as it stands in the Keychain.
struct S3Login: Codable {
    var bucket = ""
    var region = "us-east-1"
    /// Empty for Amazon's.
    var endpoint = ""
    var accessKeyID = ""
    var secretAccessKey = ""
}

/// The key that is being edited, and the bucket that it opens.
@MainActor @Observable final class S3Account {
    var login = S3Login()
    private(set) var message: String?
    private let keychain = Keychain<S3Login>(account: "s3")

    init() {
        do {
            login = try keychain.load() ?? S3Login()
        } catch {
            message = error.localizedDescription
        }
    }

    /// An object to play; nil, with a message, where that can't be. The login is remembered.
    func title(ofObject object: String) -> Title? {
        do {
            let title = Title(name: object, source: try bucket().media(object))
            try keychain.save(login)
            message = nil
            return title
        } catch {
            message = error.localizedDescription
            return nil
        }
    }

    /// Forgets the login. What was stored stays.
    func forget() {
        login = S3Login()
        do {
            try keychain.save(nil)
            message = nil
        } catch {
            message = error.localizedDescription
        }
    }

    /// Amazon's buckets have hosts of their own; other services mostly want the name in the path.
    private func bucket() throws -> S3Bucket {
        let credentials = S3Bucket.Credentials(
            accessKeyID: login.accessKeyID, secretAccessKey: login.secretAccessKey)
        guard !login.endpoint.isEmpty else {
            return try S3Bucket(login.bucket, region: login.region) { _ in credentials }
        }
        // What is signed can be read, and asked for, by whoever reads along.
        guard let endpoint = URL(string: login.endpoint), endpoint.scheme?.lowercased() == "https" else {
            throw URLError(
                .badURL, userInfo: [NSLocalizedDescriptionKey: "The endpoint has to begin with https://"])
        }
        return try S3Bucket(login.bucket, region: login.region, endpoint: endpoint, addressing: .path) { _ in
            credentials
        }
    }
}

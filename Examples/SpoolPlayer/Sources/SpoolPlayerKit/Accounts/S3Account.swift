import Observation
import SpoolAVFoundation
import SpoolSources

/// The login for a bucket, as stored in the Keychain.
struct S3Login: Codable {
    var bucket = ""
    var region = "us-east-1"
    /// The URL of the service; empty for Amazon S3.
    var endpoint = ""
    var accessKeyID = ""
    var secretAccessKey = ""
}

/// The login that the user edits, and access to its bucket.
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

    /// Returns an object to play, and saves the login. If that fails, sets a message and returns `nil`.
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

    /// Removes the login. Stored media stays.
    func forget() {
        login = S3Login()
        do {
            try keychain.save(nil)
            message = nil
        } catch {
            message = error.localizedDescription
        }
    }

    /// Returns the bucket. Amazon's buckets have separate hosts; other services usually expect the name in the path.
    private func bucket() throws -> S3Bucket {
        let credentials = S3Bucket.Credentials(
            accessKeyID: login.accessKeyID, secretAccessKey: login.secretAccessKey)
        guard !login.endpoint.isEmpty else {
            return try S3Bucket(login.bucket, region: login.region) { _ in credentials }
        }
        // Without TLS, anyone on the network could read a signed URL and request it.
        guard let endpoint = URL(string: login.endpoint), endpoint.scheme?.lowercased() == "https" else {
            throw URLError(
                .badURL, userInfo: [NSLocalizedDescriptionKey: "The endpoint must start with https://"])
        }
        return try S3Bucket(login.bucket, region: login.region, endpoint: endpoint, addressing: .path) { _ in
            credentials
        }
    }
}

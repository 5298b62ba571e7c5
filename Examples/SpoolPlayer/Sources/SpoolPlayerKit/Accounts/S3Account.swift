import Observation
import SpoolAVFoundation
import SpoolSources

/// The login for a bucket, as stored in the Keychain.
struct S3Login: Codable {
    var bucket = ""
    var region = "us-east-1"
    /// The URL of the service, or an empty string for Amazon S3.
    var endpoint = ""
    var accessKeyID = ""
    var secretAccessKey = ""
}

/// The login that the user edits, and access to the bucket.
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

    /// Returns an object to play, and saves the login. If either fails, sets a message and returns `nil`.
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

    /// Removes the login. Stored media remains in the cache.
    func forget() {
        login = S3Login()
        do {
            try keychain.save(nil)
            message = nil
        } catch {
            message = error.localizedDescription
        }
    }

    /// Returns a client for the bucket. Each Amazon S3 bucket has its own host. Other services usually expect the
    /// bucket's name in the path.
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

import Observation
import SpoolAVFoundation
import SpoolSources

/// The login for a WebDAV server, as stored in the Keychain.
struct WebDAVLogin: Codable {
    var address = ""
    var user = ""
    var password = ""
}

/// The login that the user edits, and access to the server.
@MainActor @Observable final class WebDAVAccount {
    var login = WebDAVLogin()
    private(set) var server: WebDAV?
    private(set) var message: String?
    private let keychain = Keychain<WebDAVLogin>(account: "webdav")
    private let upstream: any Upstream

    /// - Parameter upstream: The transport for folder requests. The cache requests the media itself.
    init(over upstream: any Upstream) {
        self.upstream = upstream
        do {
            login = try keychain.load() ?? WebDAVLogin()
        } catch {
            message = error.localizedDescription
        }
    }

    /// Creates a client for the server, and saves the login. All files share one account object, which must exist while
    /// they play.
    func open() {
        server = nil
        guard let root = URL(string: login.address), root.scheme?.lowercased() == "https" else {
            message = "The URL must start with https://"
            return
        }
        server = WebDAV(rootURL: root, account: .basic(user: login.user, password: login.password), upstream: upstream)
        save(login)
    }

    /// Removes the login. Stored media remains in the cache.
    func forget() {
        (login, server) = (WebDAVLogin(), nil)
        save(nil)
    }

    private func save(_ login: WebDAVLogin?) {
        do {
            try keychain.save(login)
            message = nil
        } catch {
            message = error.localizedDescription
        }
    }
}

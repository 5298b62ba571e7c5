import Observation
import SpoolAVFoundation
import SpoolSources

/// A login at a WebDAV server, as it stands in the Keychain.
struct WebDAVLogin: Codable {
    var address = ""
    var user = ""
    var password = ""
}

/// The login that is being edited, and the server that it opens.
@MainActor @Observable final class WebDAVAccount {
    var login = WebDAVLogin()
    private(set) var server: WebDAV?
    private(set) var message: String?
    private let keychain = Keychain<WebDAVLogin>(account: "webdav")
    private let upstream: any Upstream

    /// - Parameter upstream: What asks for folders; media is asked for by the cache.
    init(over upstream: any Upstream) {
        self.upstream = upstream
        do {
            login = try keychain.load() ?? WebDAVLogin()
        } catch {
            message = error.localizedDescription
        }
    }

    /// Opens the server, and remembers the login. One account is asked for all files: keep it as long as they play.
    func open() {
        server = nil
        guard let root = URL(string: login.address), root.scheme?.lowercased() == "https" else {
            message = "The address has to begin with https://"
            return
        }
        server = WebDAV(at: root, account: .basic(user: login.user, password: login.password), over: upstream)
        save(login)
    }

    /// Forgets the login. What was stored stays.
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

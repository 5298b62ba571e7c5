import Foundation
import SpoolTesting

/// The WebDAV servers that tests run. Each serves a directory to the user “u”, whose first password is “pass w”.
enum WebDAVServers: String, CaseIterable, Sendable {
    case rclone, nginx, apache2

    var path: String? {
        if self == .nginx, !FileManager.default.fileExists(atPath: Self.nginxModule) { return nil }
        return RealServer.path(of: rawValue)
    }

    static var present: [WebDAVServers] { allCases.filter { $0.path != nil } }

    private static let nginxModule = "/usr/lib/nginx/modules/ngx_http_dav_ext_module.so"

    func start(over folder: String, in scratch: ScratchDirectory) async throws -> RealServer {
        let state = scratch.file(rawValue)
        try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: true)
        try setPassword(.first, in: scratch)
        return try await RealServer(path ?? "") { port in
            switch self {
            case .rclone:
                return [
                    "serve", "webdav", "--addr", "127.0.0.1:\(port)", "--htpasswd", state + "/users", "--etag-hash",
                    "MD5", folder,
                ]
            case .nginx:
                let file = state + "/nginx.conf"
                try Self.nginx(port, folder, state).write(toFile: file, atomically: true, encoding: .utf8)
                return ["-c", file, "-e", state + "/errors"]
            case .apache2:
                let file = state + "/apache.conf"
                try Self.apache(port, folder, state).write(toFile: file, atomically: true, encoding: .utf8)
                return ["-X", "-f", file]
            }
        }
    }

    /// The user's passwords as SHA-1 hashes, which all of the servers accept.
    enum Password: String {
        /// “pass w”
        case first = "JjQiymR4L3aM36gne9ylFYi1fT0="
        /// “new w”
        case second = "RWxB7JRJWt2LIS3KkyPARCVVxFA="
    }

    /// Sets the only password that a running server accepts.
    func setPassword(_ password: Password, in scratch: ScratchDirectory) throws {
        let users = scratch.file(rawValue) + "/users"
        try "u:{SHA}\(password.rawValue)\n".write(toFile: users, atomically: true, encoding: .utf8)
        // The server may run as another user.
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: users)
    }

    private static func nginx(_ port: Int, _ folder: String, _ state: String) -> String {
        """
        load_module \(nginxModule);
        daemon off; master_process off; pid \(state)/pid; error_log \(state)/errors;
        events {}
        http {
            types { video/mp4 mp4; }
            access_log off; client_body_temp_path \(state)/body;
            server {
                listen 127.0.0.1:\(port); root \(folder); auth_basic x; auth_basic_user_file \(state)/users;
                dav_ext_methods PROPFIND;
            }
        }

        """
    }

    private static func apache(_ port: Int, _ folder: String, _ state: String) -> String {
        let modules = [
            "mpm_event", "authn_core", "authn_file", "auth_basic", "authz_core", "authz_user", "mime", "dav", "dav_fs",
        ]
        let loading = modules.map { "LoadModule \($0)_module modules/mod_\($0).so\n" }.joined()
        return """
            ServerRoot /usr/lib/apache2
            ServerName localhost
            Listen 127.0.0.1:\(port)
            PidFile \(state)/pid
            ErrorLog \(state)/errors
            DefaultRuntimeDir \(state)
            Mutex file:\(state)
            User www-data
            Group www-data
            \(loading)
            TypesConfig /dev/null
            AddType video/mp4 .mp4
            DocumentRoot \(folder)
            DavLockDB \(state)/lock
            <Directory \(folder)>
            Dav On
            AuthType Basic
            AuthName x
            AuthUserFile \(state)/users
            Require valid-user
            </Directory>

            """
    }
}

import Foundation
import GRDB

/// The secret that opens a catalog, with its cipher.
struct CatalogLock {
    var cipher = CatalogCipher.plain
    var secret: CacheSecret?

    init(_ db: Database, _ key: EncryptionKey?, path: String, isWritable: Bool) throws {
        let mark: Data? = try db.setting("encryption")
        switch (mark, key) {
        case (nil, nil): return
        case (_?, nil):
            throw CacheError(.keyRequired, "“\(path)” is encrypted, and no key was given")
        case (let mark?, let key?):
            secret = try EncryptionMark(mark).secret(key, path: path)
        case (nil, let key?):
            // A catalog that was never used has no secret.
            guard try db.setting("sealKey") as Data? == nil,
                try Int.fetchOne(db, sql: "SELECT 1 FROM resource LIMIT 1") == nil
            else {
                throw CacheError(
                    .keyRefused,
                    "“\(path)” is not encrypted, and a key was given; a cache is encrypted by giving it a new key, never "
                        + "by opening it")
            }
            guard isWritable else { return }
            let secret = CacheSecret(format: .encrypted)
            try db.set("encryption", to: EncryptionMark(secret, for: key).data.databaseValue)
            self.secret = secret
        }
        if let secret { cipher = CatalogCipher(secret) }
    }
}

extension Catalog {
    /// Checks whether an existing catalog opens with a key. It changes nothing, unlike opening it to write.
    ///
    /// - Throws: ``CacheError``: `keyRequired`, `keyRefused`, `invalidArgument` for an impossible key, or an error of
    ///   deriving it. Opening the catalog reports all other errors.
    static func checkKey(_ key: EncryptionKey?, path: String, fileSystem: any FileSystem) throws {
        guard try fileSystem.attributes(path) != nil else { return }
        do {
            try Catalog(inspecting: path, key: key).close()
        } catch let error as CacheError
            where ![.keyRequired, .keyRefused, .invalidArgument].contains(error.code)
        {
            return
        }
    }
}

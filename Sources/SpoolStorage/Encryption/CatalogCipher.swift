import Crypto
import Foundation
import GRDB

/// How the catalog writes what says what is kept: as it is, or so that only who has the key can read it.
///
/// An enciphered value fits one cell: it is bound to its column and its row, so that one which is moved to another is as one
/// that was changed. What can't be opened is not there.
struct CatalogCipher: Sendable {
    /// A column that is enciphered.
    enum Column: String {
        case url, contentType, createdAt, lastUsedAt, version, fields, collection, source, history
    }

    /// A value that was changed, moved, or made with another key.
    struct UnreadableValue: Error {}

    private struct Keys {
        var cells: SymmetricKey
        var sets: SymmetricKey
        var names: KeyPermutation
        var format: BlockFormat
    }

    /// Nil: all is written as it is.
    private let keys: Keys?

    /// Writes everything as it is.
    static let plain = CatalogCipher(keys: nil)

    private init(keys: Keys?) { self.keys = keys }

    /// The one that goes with a cache's secret.
    init(_ secret: CacheSecret) {
        guard secret.format.isEncrypted else {
            self.init(keys: nil)
            return
        }
        self.init(
            keys: Keys(
                cells: secret.derive("spool.cells"), sets: secret.derive("spool.sets"),
                names: KeyPermutation(secret.derive("spool.names")), format: secret.format))
    }

    var isPlain: Bool { keys == nil }

    // MARK: - Keys

    /// What stands in the catalog for a cache key's hash.
    func name(of key: String) -> String { keys?.names.name(of: key) ?? key }

    /// The cache key's hash that a name stands for.
    func key(of name: String) -> String { keys?.names.key(of: name) ?? name }

    // MARK: - Values

    /// What to write into a cell.
    ///
    /// - Parameters:
    ///   - row: What the row is about: the name of its resource, and more.
    func seal(_ text: String?, _ column: Column, of row: String) throws -> DatabaseValue {
        guard let text else { return .null }
        guard let keys else { return text.databaseValue }
        return try Self.seal(Data(text.utf8), Self.place(column, row), keys).databaseValue
    }

    /// As ``seal(_:_:of:)``, where the same text must give the same value each time, to be found by: a set's name.
    func sealForSearch(_ text: String, _ column: Column) throws -> DatabaseValue {
        guard let keys else { return text.databaseValue }
        let place = Self.place(column, "")
        // A nonce that belongs to this text and no other (as in RFC 5297).
        let nonce = HMAC<SHA256>.authenticationCode(for: place + Data(text.utf8), using: keys.sets)
        return try Self.seal(Data(text.utf8), place, keys, nonce: Data(nonce.prefix(12))).databaseValue
    }

    /// Reads a cell.
    ///
    /// - Throws: `RowDecodingError` where it holds another type; ``UnreadableValue``.
    func open(_ row: Row, _ index: Int, _ column: Column, of name: String) throws -> String? {
        guard let keys else { return try row.decode(atIndex: index) }
        guard let data: Data = try row.decode(atIndex: index) else { return nil }
        return String(decoding: try Self.open(data, Self.place(column, name), keys), as: UTF8.self)
    }

    /// A date, for a cell of its own beside the number by which rows are put in order; null where that number says it.
    func seal(_ date: Date, _ column: Column, of row: String) throws -> DatabaseValue {
        isPlain ? .null : try seal(String(date.microseconds), column, of: row)
    }

    /// The date in such a cell, or if it has none, the date that the number represents.
    ///
    /// - Throws: The errors of ``open(_:_:_:of:)``, and ``UnreadableValue`` if the date is more than 10,000 years from
    ///   1970.
    func open(_ row: Row, _ index: Int, number: Int, _ column: Column, of name: String) throws -> Date {
        let text = isPlain ? nil : try open(row, index, column, of: name)
        let microseconds: Int64 = try text.flatMap { Int64($0) } ?? row.decode(atIndex: number)
        guard let date = Date(microseconds: microseconds) else { throw UnreadableValue() }
        return date
    }

    /// The row of a generation: it counts only with its resource, its file and its length.
    static func place(of generation: GenerationIdentifier, length: Int64?, in name: String) -> String {
        "\(name)\0\(generation.hex)\0\(length.map { "\($0)" } ?? "")"
    }

    private static func place(_ column: Column, _ row: String) -> Data { Data("\(column.rawValue)\0\(row)".utf8) }

    /// A nonce of 12 bytes, the ciphertext, and a tag of 16.
    private static func seal(_ data: Data, _ place: Data, _ keys: Keys, nonce: Data? = nil) throws -> Data {
        let sealed = try keys.format.seal(data, using: keys.cells, nonce: nonce, authenticating: place)
        return sealed.nonce + sealed.ciphertext + sealed.tag
    }

    private static func open(_ data: Data, _ place: Data, _ keys: Keys) throws -> Data {
        guard data.count >= 28 else { throw UnreadableValue() }
        do {
            return try keys.format.open(
                data.dropFirst(12).dropLast(16), nonce: data.prefix(12), tag: data.suffix(16), using: keys.cells,
                authenticating: place)
        } catch {
            throw UnreadableValue()
        }
    }
}

import Crypto
import Foundation
import GRDB

/// The cipher for the catalog's values. In an unencrypted cache, it does not change them.
///
/// An encrypted value belongs to one column and row. A value that has been moved to another cell counts as changed. A
/// row with a value that can't be read counts as missing.
struct CatalogCipher: Sendable {
    /// A column that is encrypted.
    enum Column: String {
        case url, contentType, createdAt, lastUsedAt, version, fields, collection, source, history
    }

    /// The error for a value whose type is not that of its column, or that was changed, moved or encrypted with another
    /// key.
    struct UnreadableValue: Error {}

    private struct Keys {
        var cells: SymmetricKey
        var sets: SymmetricKey
        var names: KeyPermutation
        var format: BlockFormat
    }

    /// The keys; `nil` if values are not encrypted.
    private let keys: Keys?

    /// The cipher that leaves values unencrypted.
    static let plain = CatalogCipher(keys: nil)

    private init(keys: Keys?) { self.keys = keys }

    /// Creates the cipher for a cache's secret.
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

    /// Returns the name that represents a cache key's hash in the catalog.
    func name(of key: String) -> String { keys?.names.name(of: key) ?? key }

    /// Returns the cache key's hash that a name represents.
    func key(of name: String) -> String { keys?.names.key(of: name) ?? name }

    // MARK: - Values

    /// Returns the value to store in a cell.
    ///
    /// - Parameter row: The name of the row's resource, and other values that identify the row.
    func seal(_ text: String?, _ column: Column, of row: String) throws -> DatabaseValue {
        guard let text else { return .null }
        guard let keys else { return text.databaseValue }
        return try Self.seal(Data(text.utf8), Self.place(column, row), keys).databaseValue
    }

    /// Returns the value to store in a cell that is searched. The same text always has the same value.
    func sealForSearch(_ text: String, _ column: Column) throws -> DatabaseValue {
        guard let keys else { return text.databaseValue }
        let place = Self.place(column, "")
        // The nonce is unique to this text, as in RFC 5297.
        let nonce = HMAC<SHA256>.authenticationCode(for: place + Data(text.utf8), using: keys.sets)
        return try Self.seal(Data(text.utf8), place, keys, nonce: Data(nonce.prefix(12))).databaseValue
    }

    /// Returns the decrypted text in a cell; `nil` if the cell is null.
    ///
    /// - Throws: ``UnreadableValue``.
    func open(_ row: Row, _ index: Int, _ column: Column, of name: String) throws -> String? {
        guard let keys else { return try row.text(index) }
        guard let data = try row.data(index) else { return nil }
        return String(decoding: try Self.open(data, Self.place(column, name), keys), as: UTF8.self)
    }

    /// Returns the encrypted date, to be stored next to the number that defines the order of rows; null if that number
    /// is the date.
    func seal(_ date: Date, _ column: Column, of row: String) throws -> DatabaseValue {
        isPlain ? .null : try seal(String(date.microseconds), column, of: row)
    }

    /// Returns the date in an encrypted cell or, if the cell is null, the date that the number represents.
    ///
    /// - Throws: ``UnreadableValue``, including if the date is more than 10,000 years from 1970.
    func open(_ row: Row, _ index: Int, number: Int, _ column: Column, of name: String) throws -> Date {
        let text = isPlain ? nil : try open(row, index, column, of: name)
        guard let microseconds = try text.flatMap({ Int64($0) }) ?? row.integer(number),
            let date = Date(microseconds: microseconds)
        else { throw UnreadableValue() }
        return date
    }

    /// Returns the playback history in a cell; empty if another program has changed it.
    func history(_ row: Row, _ index: Int, of name: String) -> PlaybackHistory {
        PlaybackHistory(try? open(row, index, .history, of: name))  // Fails if another program changed it.
    }

    /// Returns the text that identifies the row of a version: its resource, file and length.
    static func place(of generation: GenerationIdentifier, length: Int64?, in name: String) -> String {
        "\(name)\0\(generation.hex)\0\(length.map { "\($0)" } ?? "")"
    }

    private static func place(_ column: Column, _ row: String) -> Data { Data("\(column.rawValue)\0\(row)".utf8) }

    /// Returns a 12-byte nonce, the ciphertext, and a 16-byte tag.
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

/// The cells of a row. SQLite stores values of any type in any column, so each cell's type is checked when it is read.
///
/// Each method throws ``CatalogCipher/UnreadableValue`` if the cell contains a different type, and returns `nil` for
/// null.
extension Row {
    /// Returns the integer in a cell.
    func integer(_ index: Int) throws(CatalogCipher.UnreadableValue) -> Int64? {
        switch (self[index] as DatabaseValue).storage {
        case .null: return nil
        case .int64(let value): return value
        default: throw CatalogCipher.UnreadableValue()
        }
    }

    /// Returns the text in a cell.
    func text(_ index: Int) throws(CatalogCipher.UnreadableValue) -> String? {
        switch (self[index] as DatabaseValue).storage {
        case .null: return nil
        case .string(let value): return value
        default: throw CatalogCipher.UnreadableValue()
        }
    }

    /// Returns the bytes in a cell.
    func data(_ index: Int) throws(CatalogCipher.UnreadableValue) -> Data? {
        switch (self[index] as DatabaseValue).storage {
        case .null: return nil
        case .blob(let value): return value
        default: throw CatalogCipher.UnreadableValue()
        }
    }

    /// Returns whether a cell contains anything other than 0 or null, so that a pin of the wrong type still protects
    /// its resource.
    func isSet(_ index: Int) -> Bool {
        switch (self[index] as DatabaseValue).storage {
        case .null, .int64(0): false
        default: true
        }
    }
}

/// A mapping of the 256 bits of a cache key to 256 other bits, and back, under a secret. The catalog can find a
/// resource by its key, but without the secret, a program can't test whether a URL is stored.
///
/// The mapping uses four rounds of a Feistel network over HMAC-SHA256, which is a pseudo-random permutation in both
/// directions (M. Luby, C. Rackoff: How to construct pseudorandom permutations from pseudorandom functions, 1988).
struct KeyPermutation: Sendable {
    private let key: SymmetricKey

    init(_ key: SymmetricKey) { self.key = key }

    /// Returns the name of a key. A string that is not 64 lowercase hexadecimal digits is returned unchanged.
    func name(of key: String) -> String { apply(to: key, rounds: [0, 1, 2, 3]) }

    /// Returns the key that a name represents.
    func key(of name: String) -> String {
        guard let (left, right) = Self.halves(of: name) else { return name }
        // The inverse of the network is the same network with its halves and rounds in the opposite order.
        let (first, second) = feistel(right, left, rounds: [3, 2, 1, 0])
        return (second + first).hexadecimal
    }

    private func apply(to text: String, rounds: [UInt8]) -> String {
        guard let (left, right) = Self.halves(of: text) else { return text }
        let (first, second) = feistel(left, right, rounds: rounds)
        return (first + second).hexadecimal
    }

    private func feistel(_ left: [UInt8], _ right: [UInt8], rounds: [UInt8]) -> ([UInt8], [UInt8]) {
        var (left, right) = (left, right)
        for round in rounds {
            let code = HMAC<SHA256>.authenticationCode(for: [round] + right, using: key)
            (left, right) = (right, zip(left, code).map { $0 ^ $1 })
        }
        return (left, right)
    }

    private static func halves(of text: String) -> ([UInt8], [UInt8])? {
        var bytes: [UInt8] = []
        var high: UInt8?
        for digit in text.utf8 {
            let value: UInt8
            switch digit {
            case 48...57: value = digit - 48
            case 97...102: value = digit - 87
            default: return nil
            }
            if let first = high {
                bytes.append(first << 4 | value)
                high = nil
            } else {
                high = value
            }
        }
        guard bytes.count == 32, high == nil else { return nil }
        return (Array(bytes[..<16]), Array(bytes[16...]))
    }
}

extension [UInt8] {
    fileprivate var hexadecimal: String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}

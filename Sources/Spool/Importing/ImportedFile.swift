import Foundation
import SpoolStorage

/// A file that is imported, as it was when it was opened. Everything here blocks.
final class ImportedFile: Sendable {
    private let file: any StoredFile
    private let path: String
    /// Bytes that it has.
    let length: Int64
    /// When it was last written.
    private let modified: Date?

    /// - Throws: `CacheError` with code `.storage` where it can't be read, or is no regular file.
    init(_ path: String) throws {
        self.path = path
        file = try SystemFileSystem().openFile(path, .read)
        length = try file.size()
        modified = Self.modificationDate(of: path)
    }

    /// Whether it is as it was.
    var isUnchanged: Bool { get throws { try file.size() == length && Self.modificationDate(of: path) == modified } }

    func hashes() throws -> FileHashes { try FileHashes(of: file) }

    /// - Throws: `CacheError` with code `.storage`, also where it has become shorter.
    func read(_ range: Range<Int64>) throws -> Data {
        var data = Data(count: range.count)
        let count = try data.withUnsafeMutableBytes { try file.read(into: $0, at: range.lowerBound) }
        guard count == range.count else { throw CacheError(.storage, "“\(path)” has become shorter while it was read") }
        return data
    }

    private static func modificationDate(of path: String) -> Date? {
        // Without one, only the length is compared.
        try? FileManager.default.attributesOfItem(atPath: path)[.modificationDate] as? Date
    }
}

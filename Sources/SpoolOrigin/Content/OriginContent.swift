public import Foundation

/// The bytes behind a URL of an `OriginServer`: a pattern, bytes in memory, or a file.
///
/// Does not know about HTTP. Bytes past the end exist only for responses that are longer than they should be: a pattern
/// goes on, memory and files are followed by zeros.
#if hasAttribute(nonexhaustive)
@nonexhaustive
#endif
public enum OriginContent: Sendable {
    /// Bytes that follow from their offset, made while they are sent.
    case pattern(PatternBytes)
    /// Bytes in memory.
    case data(Data)
    /// A file, read while it is sent; a file that cannot be read is sent as zeros.
    case file(URL)

    /// Number of bytes; 0 for a file that cannot be read.
    public var length: Int64 {
        switch self {
        case .pattern(let pattern): pattern.length
        case .data(let data): Int64(data.count)
        case .file(let url):
            // As documented: 0 for a file that can't be read.
            (try? FileManager.default.attributesOfItem(atPath: url.path)[.size] as? NSNumber)?.int64Value ?? 0
        }
    }

    /// The bytes of the half-open `range`, which may reach past the end.
    package func bytes(_ range: Range<Int64>) -> [UInt8] {
        switch self {
        case .pattern(let pattern): return pattern.bytes(range)
        case .data(let data):
            return Self.pad(data.dropFirst(Int(range.lowerBound)).prefix(range.count), to: range.count)
        case .file(let url):
            // As documented: zeros where the file can't be read.
            return Self.pad((try? Self.read(range, of: url)) ?? Data(), to: range.count)
        }
    }

    private static func read(_ range: Range<Int64>, of url: URL) throws -> Data? {
        let file = try FileHandle(forReadingFrom: url)
        try file.seek(toOffset: UInt64(range.lowerBound))
        return try file.read(upToCount: range.count)
    }

    private static func pad(_ bytes: some Collection<UInt8>, to count: Int) -> [UInt8] {
        Array(bytes) + [UInt8](repeating: 0, count: max(0, count - bytes.count))
    }
}

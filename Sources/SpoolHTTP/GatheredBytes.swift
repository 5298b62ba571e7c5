import Foundation

/// Received bytes to which later ones can be appended, so that many small pieces are handled as one.
protocol GatheredBytes: ContiguousBytes, Sendable {
    /// Appends the bytes that follow.
    mutating func append(_ other: Self)
}

extension GatheredBytes {
    /// The maximum size of a joined piece, in bytes. A larger piece stays as it was received.
    static var gatherLimit: Int { 16 << 10 }
}

extension Data: GatheredBytes {}

public import ByteRanges
public import SpoolStorage

/// How much of a media file is there: what a download bar or a list of episodes shows.
public struct ResourceState: Sendable, Equatable {
    /// Which bytes can be read without asking the origin.
    public var storedRanges: ByteRangeSet
    /// Number of bytes of the whole; nil as long as no response has told it.
    public var length: Int64?
    /// Why readers wait in vain: the error that they were given last. Nil once bytes come again.
    public var failure: CacheError?

    /// A state as it may be met: for previews and tests of what shows one.
    public init(storedRanges: ByteRangeSet, length: Int64?, failure: CacheError? = nil) {
        self.storedRanges = storedRanges
        self.length = length
        self.failure = failure
    }

    /// Number of bytes that are there.
    public var storedByteCount: Int64 { storedRanges.byteCount }

    /// The part that is there, from 0 to 1; nil as long as the length is not known.
    public var fractionCompleted: Double? {
        length.map { $0 > 0 ? min(Double(storedByteCount) / Double($0), 1) : 1 }
    }

    /// Whether every byte is there.
    public var isComplete: Bool { length.map { storedRanges.contains(0..<$0) } ?? false }

    /// Whether both show the same.
    public static func == (left: ResourceState, right: ResourceState) -> Bool {
        left.length == right.length && left.storedRanges == right.storedRanges
            && left.failure?.code == right.failure?.code && left.failure?.message == right.failure?.message
    }
}

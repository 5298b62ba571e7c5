public import Foundation
package import SpoolStorage

/// A piece of a resource that a reader returns: its offset and its bytes.
public struct MediaChunk: Sendable {
    private enum Storage: Sendable {
        case data(Data)
        case slice(MediaSlice)
    }

    /// The offset of the first byte in the resource.
    public let offset: Int64
    private let storage: Storage

    /// Creates a chunk of bytes in memory.
    package init(offset: Int64, data: Data) {
        self.offset = offset
        self.storage = .data(data)
    }

    /// Creates a chunk of bytes that stay in their file.
    package init(_ slice: MediaSlice) {
        self.offset = slice.range.lowerBound
        self.storage = .slice(slice)
    }

    /// The bytes; never empty.
    public var data: Data {
        switch storage {
        case .data(let data): data
        // This reads the file, which blocks the thread.
        case .slice(let slice): slice.data
        }
    }

    /// Calls `body` with the bytes, which are valid only during the call.
    public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        try data.withUnsafeBytes(body)
    }

    /// The bytes as a part of a file, which can be sent without passing through memory, or `nil` if the bytes are in
    /// memory.
    ///
    /// The part does not change while this chunk or the slice exists.
    package var slice: MediaSlice? {
        if case .slice(let slice) = storage { slice } else { nil }
    }

    /// The number of bytes.
    public var count: Int {
        switch storage {
        case .data(let data): data.count
        case .slice(let slice): slice.range.count
        }
    }

    /// The half-open range of the bytes in the resource.
    package var range: Range<Int64> { offset..<offset + Int64(count) }
}

extension MediaChunk {
    /// Creates a chunk of the bytes in a range. Returns `nil` if these bytes are not in memory.
    ///
    /// - Parameter asSlice: Whether the bytes may stay in their file.
    init?(inMemory range: Range<Int64>, of lease: Lease, asSlice: Bool) {
        let generation = lease.generation
        if asSlice, generation.handsOutSlices {
            guard let slice = generation.sliceIfAvailable(range, holding: lease) else { return nil }
            self.init(slice)
        } else {
            guard let data = generation.dataIfAvailable(at: range.lowerBound, count: range.count) else { return nil }
            self.init(offset: range.lowerBound, data: data)
        }
    }

    /// Creates a chunk by reading the bytes in a range. This call blocks.
    ///
    /// - Parameter asSlice: Whether the bytes may stay in their file.
    /// - Throws: `MissingBytes` if they are no longer stored; `CacheError` if the disk fails.
    init(reading range: Range<Int64>, of generation: Generation, asSlice: Bool) throws {
        if asSlice, generation.handsOutSlices {
            self.init(try generation.slice(range))
        } else {
            self.init(offset: range.lowerBound, data: try generation.read(range))
        }
    }
}

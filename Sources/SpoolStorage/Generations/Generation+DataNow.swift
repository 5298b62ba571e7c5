package import Foundation

extension Generation {
    /// Up to `count` bytes from `offset` on, at once, on the calling thread; nil if that would need the disk, or they
    /// have not landed. See ``readNow(_:into:)``.
    package func dataNow(at offset: Int64, count: Int) -> Data? {
        // Without memory for a buffer, the slow way says so.
        try? ReadBuffers.data(upTo: count) { readNow(offset, into: $0) }
    }
}

extension MediaSlice {
    /// The bytes, read from where they are; empty if the disk fails. Blocks.
    package var data: Data {
        // A disk that fails here failed between the proof and now; ``read(into:)`` says how.
        (try? ReadBuffers.data(upTo: count) { try read(into: $0) }) ?? Data()
    }
}

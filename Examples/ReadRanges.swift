import SpoolAVFoundation

/// Reads the first 16 bytes of a file, and then all bytes from offset 1024, in chunks. Stored bytes are not fetched
/// again.
func headAndRest(of url: URL, in cache: MediaCache) async throws -> (head: Data, rest: Int) {
    let media = cache.media(for: url)
    let head = try await media.data(in: 0..<16)
    var rest = 0
    for try await chunk in media.reader(in: 1024...) { rest += chunk.count }
    return (head, rest)
}

/// An input for a decoder that calls a function on its own thread to read bytes, and blocks until they are available.
nonisolated final class DecoderInput: Sendable {
    private let reader: MediaReader

    init(_ media: MediaResource) { reader = media.reader() }

    func read(_ bytes: UnsafeMutableRawPointer, _ count: Int, at offset: Int64) throws -> Int {
        try reader.read(into: UnsafeMutableRawBufferPointer(start: bytes, count: count), at: offset)
    }
}

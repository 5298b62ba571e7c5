import SpoolAVFoundation

/// A file's first bytes, and then all from its second kilobyte on, piece by piece; what is stored is not fetched again.
func headAndRest(of url: URL, in cache: MediaCache) async throws -> (head: Data, rest: Int) {
    let media = cache.media(for: url)
    let head = try await media.data(in: 0..<16)
    var rest = 0
    for try await chunk in media.reader(in: 1024...) { rest += chunk.count }
    return (head, rest)
}

/// The same for a decoder's own thread, which asks by a callback and waits until there is something.
final class DecoderInput: Sendable {
    private let reader: MediaReader

    init(_ media: MediaResource) { reader = media.reader() }

    func read(_ bytes: UnsafeMutableRawPointer, _ count: Int, at offset: Int64) throws -> Int {
        try reader.read(into: UnsafeMutableRawBufferPointer(start: bytes, count: count), at: offset)
    }
}

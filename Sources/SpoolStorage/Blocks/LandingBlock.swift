/// The bytes of a block that is being received, in memory until it is sealed: what an encrypted cache has of it nowhere
/// else.
///
/// `@unchecked Sendable`: bytes are only ever added, by the one who holds the media file's writer, and are read only up to
/// what the map says has landed, under whose lock that is published.
final class LandingBlock: @unchecked Sendable {
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(Block.size), alignment: 16)
    /// How many bytes there are; the writer's.
    private(set) var count = 0

    deinit { buffer.deallocate() }

    /// Adds bytes, as many as there is room for.
    func append(_ bytes: UnsafeRawBufferPointer) {
        let part = UnsafeRawBufferPointer(rebasing: bytes.prefix(buffer.count - count))
        UnsafeMutableRawBufferPointer(rebasing: buffer[count...]).copyMemory(from: part)
        count += part.count
    }

    /// The first bytes.
    func bytes(_ count: Int) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: buffer[..<count]) }
}

#if Proxy
import NIOCore
import SpoolStreams

/// Holds back the start of a body until it is certain that the body is not a manifest; see
/// ``Response/closesIfManifest``.
///
/// At most ``ManifestKind/prefixLength`` bytes are held back, and none if the first bytes can't be those of a manifest.
struct ManifestGuard {
    /// The error for a manifest that was not rewritten.
    struct UnexpectedManifest: Error, CustomStringConvertible {
        var description: String { "the body may be a playlist or an MPD, but has the type of other media" }
    }

    /// Whether the next bytes have to be examined.
    private(set) var isActive: Bool
    private var held: [UInt8] = []

    /// - Parameter isActive: Whether the body has to be examined, from its first byte.
    init(isActive: Bool) { self.isActive = isActive }

    /// Examines the next bytes of the body, and returns the bytes that may be sent now. The result is empty while bytes
    /// are held back.
    ///
    /// - Parameter isLast: Whether no more bytes follow.
    /// - Throws: ``UnexpectedManifest`` if the body is a manifest, or if its first ``ManifestKind/prefixLength`` bytes
    ///   may be the start of one.
    mutating func examine(_ bytes: UnsafeRawBufferPointer, isLast: Bool) throws -> ByteBuffer {
        held += bytes
        let prefix = Array(held.prefix(ManifestKind.prefixLength))
        if !isLast, ManifestKind.isPossible(prefix: prefix) {
            guard held.count < ManifestKind.prefixLength else { throw UnexpectedManifest() }
            return ByteBuffer()
        }
        return try end()
    }

    /// Ends the examination, and returns the bytes that were held back.
    ///
    /// - Throws: ``UnexpectedManifest`` if the body is a manifest.
    mutating func end() throws -> ByteBuffer {
        guard ManifestKind(prefix: held) == nil else { throw UnexpectedManifest() }
        isActive = false
        defer { held = [] }
        return ByteBuffer(bytes: held)
    }
}
#endif

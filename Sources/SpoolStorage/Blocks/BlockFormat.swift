#if os(Linux)
import CSystemFiles
#endif

/// How the bytes of a block lie in a media file. The numbers are written down: none is changed or given again.
enum BlockFormat: Int64, Hashable, Sendable, CaseIterable {
    /// As they were received.
    case plain = 1
    /// Enciphered with AES-256-GCM.
    case aesGCM = 2
    /// Enciphered with ChaCha20-Poly1305, which is the faster one for a processor without instructions for AES.
    case chaChaPoly = 3

    /// Whether only who has the key can read them.
    var isEncrypted: Bool { self != .plain }

    /// What a cache that is encrypted on this machine uses.
    static let encrypted: BlockFormat = hasAES ? .aesGCM : .chaChaPoly

    private static var hasAES: Bool {
        #if os(Linux)
        c_system_files_has_aes() != 0
        #else
        // All of Apple's processors that this package runs on.
        true
        #endif
    }
}

import Foundation

/// Proves that a block's bytes are the ones that were received: a 12-byte nonce and a 16-byte tag.
///
/// It says nothing by itself; ``BlockSealer`` makes and checks seals.
struct BlockSeal: Hashable, Sendable {
    /// Bytes of a stored seal: nonce, then tag.
    static let byteCount = 28
    static let nonceByteCount = 12

    // 28 bytes without a heap allocation each; the order is the stored one.
    private var bytes0, bytes8, bytes16: UInt64
    private var bytes24: UInt32

    /// Reads a stored seal; nil unless there are exactly 28 bytes.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count == Self.byteCount else { return nil }
        bytes0 = bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self)
        bytes8 = bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
        bytes16 = bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self)
        bytes24 = bytes.loadUnaligned(fromByteOffset: 24, as: UInt32.self)
    }

    /// Reads a stored seal; nil unless there are exactly 28 bytes.
    init?(_ data: Data) {
        guard let seal = data.withUnsafeBytes({ BlockSeal($0) }) else { return nil }
        self = seal
    }

    /// The 28 bytes to store.
    var data: Data { withUnsafeBytes { Data($0) } }

    /// Calls `body` with the 28 bytes to store.
    func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        try Swift.withUnsafeBytes(of: (bytes0, bytes8, bytes16, bytes24)) { all in
            try body(UnsafeRawBufferPointer(rebasing: all[..<Self.byteCount]))
        }
    }
}

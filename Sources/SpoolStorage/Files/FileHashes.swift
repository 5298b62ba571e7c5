import Crypto
import Foundation

/// Hashes of a whole file, which is read once, using bounded memory.
package struct FileHashes: Sendable, Hashable {
    /// SHA-256 (FIPS 180-4).
    package let sha256: [UInt8]
    /// SHA-512 (FIPS 180-4).
    package let sha512: [UInt8]
    /// MD5 (RFC 1321). It detects damage and mistakes, but not forgery.
    package let md5: [UInt8]

    /// Computes the hashes of a file. The initializer reads the whole file, and blocks.
    ///
    /// - Throws: ``CacheError`` with code `storage`, or `CancellationError`.
    package init(of file: any StoredFile) throws {
        var (sha256, sha512, md5) = (SHA256(), SHA512(), Insecure.MD5())
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        var offset: Int64 = 0
        while true {
            try Task.checkCancellation()
            let count = try buffer.withUnsafeMutableBytes { try file.read(into: $0, at: offset) }
            guard count > 0 else { break }
            buffer.withUnsafeBytes { bytes in
                let part = UnsafeRawBufferPointer(rebasing: bytes[..<count])
                sha256.update(bufferPointer: part)
                sha512.update(bufferPointer: part)
                md5.update(bufferPointer: part)
            }
            offset += Int64(count)
        }
        self.sha256 = Array(sha256.finalize())
        self.sha512 = Array(sha512.finalize())
        self.md5 = Array(md5.finalize())
    }
}

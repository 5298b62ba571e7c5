import Crypto
import Foundation

/// The cipher of an encrypted cache: one for its blocks and for what its catalog says.
extension BlockFormat {
    /// What a cipher makes of some bytes.
    struct Sealed {
        var nonce: Data
        /// As many bytes as there were.
        var ciphertext: Data
        var tag: Data
    }

    /// Enciphers bytes.
    ///
    /// - Parameters:
    ///   - nonce: 12 bytes that no others have under this key; nil: random ones.
    ///   - header: What is authenticated beside them.
    /// - Throws: What the cipher throws.
    func seal(
        _ bytes: some DataProtocol, using key: SymmetricKey, nonce: Data? = nil, authenticating header: Data
    ) throws -> Sealed {
        if self == .chaChaPoly {
            let nonce = try nonce.map { try ChaChaPoly.Nonce(data: $0) } ?? ChaChaPoly.Nonce()
            let box = try ChaChaPoly.seal(bytes, using: key, nonce: nonce, authenticating: header)
            return Sealed(nonce: Data(box.nonce), ciphertext: box.ciphertext, tag: box.tag)
        }
        let nonce = try nonce.map { try AES.GCM.Nonce(data: $0) } ?? AES.GCM.Nonce()
        let box = try AES.GCM.seal(bytes, using: key, nonce: nonce, authenticating: header)
        return Sealed(nonce: Data(box.nonce), ciphertext: box.ciphertext, tag: box.tag)
    }

    /// Deciphers what ``seal(_:using:nonce:authenticating:)`` made.
    ///
    /// - Throws: What the cipher throws: if any part, the header or the key is another one, or a length can't be.
    func open(
        _ ciphertext: some DataProtocol, nonce: some DataProtocol, tag: some DataProtocol, using key: SymmetricKey,
        authenticating header: Data
    ) throws -> Data {
        if self == .chaChaPoly {
            let nonce = try ChaChaPoly.Nonce(data: nonce)
            let box = try ChaChaPoly.SealedBox(nonce: nonce, ciphertext: ciphertext, tag: tag)
            return try ChaChaPoly.open(box, using: key, authenticating: header)
        }
        let nonce = try AES.GCM.Nonce(data: nonce)
        let box = try AES.GCM.SealedBox(nonce: nonce, ciphertext: ciphertext, tag: tag)
        return try AES.GCM.open(box, using: key, authenticating: header)
    }
}

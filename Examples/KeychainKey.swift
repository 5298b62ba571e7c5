#if canImport(Security)
import Security
import SpoolAVFoundation

/// The cache's key in the Keychain: made at the first launch, this device's only, and readable while the screen is locked.
func keychainKey() throws -> EncryptionKey {
    // On macOS, too, the keychain that heeds kSecAttrAccessible: for signed apps with a keychain group.
    let item: [CFString: Any] = [
        kSecClass: kSecClassGenericPassword, kSecAttrService: "media-cache", kSecUseDataProtectionKeychain: true,
    ]
    var found: CFTypeRef?
    let status = SecItemCopyMatching(item.merging([kSecReturnData: true]) { $1 } as CFDictionary, &found)
    if status == errSecSuccess, let bytes = found as? Data { return EncryptionKey(bytes: bytes) }
    // One that can't be read now, as before the first unlock, is not to be replaced.
    guard status == errSecItemNotFound else { throw NSError(domain: NSOSStatusErrorDomain, code: Int(status)) }
    var random = SystemRandomNumberGenerator()
    let bytes = Data((0..<EncryptionKey.byteCount).map { _ in random.next() })
    let new: [CFString: Any] = [
        kSecValueData: bytes, kSecAttrAccessible: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
    ]
    let added = SecItemAdd(item.merging(new) { $1 } as CFDictionary, nil)
    guard added == errSecSuccess else { throw NSError(domain: NSOSStatusErrorDomain, code: Int(added)) }
    return EncryptionKey(bytes: bytes)
}
#endif

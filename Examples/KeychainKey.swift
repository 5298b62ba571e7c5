#if canImport(Security)
import Security
import SpoolAVFoundation

/// Returns the key from this device's Keychain, and creates it on first launch. The key can be read on a locked device.
func keychainKey() throws -> EncryptionKey {
    // Selects the keychain that supports kSecAttrAccessible, even on macOS. The app needs a keychain access group.
    let item: [CFString: Any] = [
        kSecClass: kSecClassGenericPassword, kSecAttrService: "media-cache", kSecUseDataProtectionKeychain: true,
    ]
    var found: CFTypeRef?
    let status = SecItemCopyMatching(item.merging([kSecReturnData: true]) { $1 } as CFDictionary, &found)
    if status == errSecSuccess, let bytes = found as? Data { return EncryptionKey(bytes: bytes) }
    // A key that can't be read now, for example before the first unlock, must not be replaced.
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

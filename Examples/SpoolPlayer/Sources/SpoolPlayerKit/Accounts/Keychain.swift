import Foundation
import Security

/// A value in this device's Keychain.
struct Keychain<Value: Codable> {
    /// The name that distinguishes the value from the app's other values.
    let account: String

    /// Returns the stored value, or `nil` if there is none.
    func load() throws -> Value? {
        var found: CFTypeRef?
        let status = SecItemCopyMatching(item.merging([kSecReturnData: true]) { $1 } as CFDictionary, &found)
        if status == errSecItemNotFound { return nil }
        guard status == errSecSuccess, let data = found as? Data else { throw error(status) }
        return try JSONDecoder().decode(Value.self, from: data)
    }

    /// Replaces the stored value, or removes it if `value` is `nil`.
    func save(_ value: Value?) throws {
        guard let value else { return try delete() }
        let content: [CFString: Any] = [
            kSecValueData: try JSONEncoder().encode(value),
            // The value must be readable while the screen is locked, because playback continues then.
            kSecAttrAccessible: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
        ]
        // The item is updated if it exists. If it were deleted and added again, a failure to add it would lose the
        // previous value.
        let updated = SecItemUpdate(item as CFDictionary, content as CFDictionary)
        if updated == errSecSuccess { return }
        guard updated == errSecItemNotFound else { throw error(updated) }
        let added = SecItemAdd(item.merging(content) { $1 } as CFDictionary, nil)
        guard added == errSecSuccess else { throw error(added) }
    }

    private func delete() throws {
        let deleted = SecItemDelete(item as CFDictionary)
        guard deleted == errSecSuccess || deleted == errSecItemNotFound else { throw error(deleted) }
    }

    private var item: [CFString: Any] {
        [
            kSecClass: kSecClassGenericPassword, kSecAttrService: "SpoolPlayer", kSecAttrAccount: account,
            // This is also needed on macOS, because the file-based keychain there does not restrict which device can
            // read the value, or when.
            kSecUseDataProtectionKeychain: true,
        ]
    }

    private func error(_ status: OSStatus) -> NSError { NSError(domain: NSOSStatusErrorDomain, code: Int(status)) }
}

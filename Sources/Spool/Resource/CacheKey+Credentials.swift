package import HTTPTypes
package import SpoolStorage

extension CacheKey {
    /// The key of what a request with these fields gets, where credentials among them make it private to who has them
    /// (RFC 9111 §3.5); this key if there are none.
    package func with(credentialsIn fields: HTTPFields) -> CacheKey {
        let credentials = [HTTPField.Name.authorization, .cookie].flatMap { name in
            fields[values: name].map { "\(name.canonicalName): \($0)" }
        }
        return credentials.isEmpty ? self : CacheKey(([hash] + credentials).joined(separator: "\n"))
    }
}

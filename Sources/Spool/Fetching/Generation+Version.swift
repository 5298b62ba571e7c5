import ByteRanges
import Foundation
import HTTPRanges
import SpoolStorage

/// The HTTP metadata of a version, in the form in which the store saves it. The store does not interpret the metadata.
extension Generation {
    /// The validator, length and type, if the origin's responses contained them.
    var resourceVersion: ResourceVersion {
        let description = description
        var version = ResourceVersion(encoded: description.version) ?? ResourceVersion()
        version.length = version.length ?? description.length
        version.contentType = version.contentType ?? description.contentType
        return version
    }

    /// Whether the bytes may belong to a live stream. Without a length, a validator or ranges, a later response may
    /// contain different bytes.
    var mayBeLive: Bool {
        let version = resourceVersion
        return version.length == nil && !version.validator.canConfirm && version.acceptsRanges != true
    }

    /// Whether the version is an error instead of media.
    var isError: Bool { storedFreshness?.exclusion == .error }

    /// The freshness and related values from the last response; `nil` if they are unknown.
    var storedFreshness: StoredFreshness? { StoredFreshness(encoded: description.fields) }

    /// Applies the values of a response. If `version` or `freshness` is `nil`, the stored value does not change. The
    /// length and the content type do not change if the version does not contain them.
    func update(_ version: ResourceVersion?, _ freshness: StoredFreshness?) {
        // The scheduler has already rejected a length that contradicts the received bytes.
        _ = update { description in
            if let version {
                description.version = version.encoded
                description.length = version.length ?? description.length
                description.contentType = version.contentType ?? description.contentType
            }
            if var freshness {
                // A response does not change which resources the version is a variant of.
                freshness.variantOf = StoredFreshness(encoded: description.fields)?.variantOf
                description.fields = freshness.encoded
            }
        }
    }

    /// Sets the length of the whole resource.
    func setLength(_ length: Int64) {
        var version = resourceVersion
        version.length = length
        update(version, nil)
    }
}

extension ResourceVersion {
    init?(encoded text: String) {
        guard let version = try? JSONDecoder().decode(ResourceVersion.self, from: Data(text.utf8)),
            (0...NumberLimits.byteOffset).contains(version.length ?? 0)
        else {
            // Another build may have written the text, or another program may have changed it. Nothing is known about
            // the version, so a request is sent to the origin.
            return nil
        }
        self = version
    }

    var encoded: String { encodedText(self) }
}

extension StoredFreshness {
    init?(encoded text: String) {
        // As above, another program may have written or changed the text. No freshness is known, so a request is sent
        // to the origin.
        guard let freshness = try? JSONDecoder().decode(StoredFreshness.self, from: Data(text.utf8)),
            freshness.isPlausible
        else { return nil }
        self = freshness
    }

    var encoded: String { encodedText(self) }
}

private func encodedText(_ value: some Encodable) -> String {
    // Strings, numbers and Booleans can always be encoded.
    (try? JSONEncoder().encode(value)).map { String(decoding: $0, as: UTF8.self) } ?? ""
}

import ByteRanges
import Foundation
import HTTPRanges
import SpoolStorage

/// What HTTP says of a version, in the form in which the store keeps it without looking inside.
extension Generation {
    /// Validator, length and type, as far as the origin's responses have told them.
    var resourceVersion: ResourceVersion {
        let description = description
        var version = ResourceVersion(encoded: description.version) ?? ResourceVersion()
        version.length = version.length ?? description.length
        version.contentType = version.contentType ?? description.contentType
        return version
    }

    /// What the last response told of it beside; nil if that is not known.
    var storedFreshness: StoredFreshness? { StoredFreshness(encoded: description.fields) }

    /// Takes over what a response told; what is nil stays.
    func update(_ version: ResourceVersion?, _ freshness: StoredFreshness?) {
        // A length that contradicts what has landed was refused by the scheduler before it comes here.
        _ = update { description in
            if let version {
                description.version = version.encoded
                description.length = version.length ?? description.length
                description.contentType = version.contentType ?? description.contentType
            }
            if var freshness {
                // Whose variant it is does not change with what a response says.
                freshness.variantOf = StoredFreshness(encoded: description.fields)?.variantOf
                description.fields = freshness.encoded
            }
        }
    }

    /// Takes over the whole resource's length.
    func learn(length: Int64) {
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
            // An older or newer build wrote it, or another program changed it. Nothing is known of the version, so the
            // origin is asked.
            return nil
        }
        self = version
    }

    var encoded: String { encodedText(self) }
}

extension StoredFreshness {
    init?(encoded text: String) {
        // As above: no freshness is known, so the origin is asked.
        guard let freshness = try? JSONDecoder().decode(StoredFreshness.self, from: Data(text.utf8)),
            freshness.isPlausible
        else { return nil }
        self = freshness
    }

    var encoded: String { encodedText(self) }
}

private func encodedText(_ value: some Encodable) -> String {
    // Strings, numbers and booleans always encode.
    (try? JSONEncoder().encode(value)).map { String(decoding: $0, as: UTF8.self) } ?? ""
}

import Foundation
import HTTPTypes

/// A file of header fields, one `Name: value` on a line; blank lines and those that begin with `#` are passed over.
struct HeaderFile {
    /// The fields, in their order.
    private(set) var fields: [HTTPField] = []

    private static let limit = 1 << 20

    /// Reads the file at `path`, as ``SecretFile`` does; warns where others can read it, too.
    ///
    /// - Throws: ``CommandFailure`` with code `headerFile`, which says nothing of what a line holds.
    init(path: String) throws {
        let file: SecretFile
        do {
            file = try SecretFile(path: path, limit: Self.limit + 1)
        } catch {
            throw Self.failure(path, error.cause)
        }
        file.warn(path)
        let data = file.data
        guard data.count <= Self.limit else { throw Self.failure(path, "is too large: it may have 1 MiB") }
        guard let text = String(data: data, encoding: .utf8) else { throw Self.failure(path, "is no text in UTF-8") }
        let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        for (index, line) in lines.enumerated() {
            let line = line.trimmingCharacters(in: .whitespaces)
            if line.isEmpty || line.hasPrefix("#") { continue }
            guard let header = HeaderArgument(argument: line) else {
                throw Self.failure(path, "has no “Name: value” in line \(index + 1)")
            }
            fields.append(header.field)
        }
    }

    private static func failure(_ path: String, _ cause: String) -> CommandFailure {
        CommandFailure(.headerFile, "the header file “\(path)” \(cause)")
    }
}

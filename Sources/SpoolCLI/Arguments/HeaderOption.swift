#if Tools
import ArgumentParser
import Foundation
import HTTPTypes

/// A header field to send to the origin, such as `Authorization: Bearer …`.
struct HeaderArgument: Hashable, Sendable {
    var field: HTTPField

    /// Parses `Name: value`.
    ///
    /// - Returns: `nil` if there is no colon, the field name is invalid (RFC 9110 §5.1), or the value contains a line
    ///   break.
    init?(argument: String) {
        guard let colon = argument.firstIndex(of: ":") else { return nil }
        let value = argument[argument.index(after: colon)...].trimmingCharacters(in: .whitespaces)
        guard let name = HTTPField.Name(String(argument[..<colon])), HTTPField.isValidValue(value) else { return nil }
        field = HTTPField(name: name, value: value)
    }
}

/// The value of `--header`: a field, or `@FILE` for a file of fields.
///
/// Fields from a file do not appear in the process list.
enum HeaderOption: Hashable, Sendable, ExpressibleByArgument {
    case field(HeaderArgument)
    case file(String)

    init?(argument: String) {
        if argument.hasPrefix("@") {
            guard argument.count > 1 else { return nil }
            self = .file(String(argument.dropFirst()))
        } else {
            guard let field = HeaderArgument(argument: argument) else { return nil }
            self = .field(field)
        }
    }
}

/// A file of header fields, with one `Name: value` on each line. Blank lines and lines that start with `#` are ignored.
struct HeaderFile {
    /// The fields, in the order of the file.
    private(set) var fields: [HTTPField] = []

    private static let limit = 1 << 20

    /// Reads the file at `path` like ``SecretFile``, and warns if other users can read it.
    ///
    /// - Throws: ``CommandFailure`` with code `headerFile`. Its message never contains the text of a line.
    init(path: String) throws {
        let file: SecretFile
        do {
            file = try SecretFile(path: path, limit: Self.limit + 1)
        } catch {
            throw Self.failure(path, error.cause)
        }
        file.warn(path)
        let data = file.data
        guard data.count <= Self.limit else { throw Self.failure(path, "is too large; the limit is 1 MiB") }
        guard let text = String(data: data, encoding: .utf8) else { throw Self.failure(path, "is not UTF-8 text") }
        let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        for (index, line) in lines.enumerated() {
            let line = line.trimmingCharacters(in: .whitespaces)
            if line.isEmpty || line.hasPrefix("#") { continue }
            guard let header = HeaderArgument(argument: line) else {
                throw Self.failure(path, "is malformed: expected “Name: value” on line \(index + 1)")
            }
            fields.append(header.field)
        }
    }

    private static func failure(_ path: String, _ cause: String) -> CommandFailure {
        CommandFailure(.headerFile, "the header file “\(path)” \(cause)")
    }
}
#endif

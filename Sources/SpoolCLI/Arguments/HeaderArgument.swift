import ArgumentParser
import Foundation
import HTTPTypes

/// A header field to send to the origin: `Authorization: Bearer …`.
struct HeaderArgument: Hashable, Sendable {
    var field: HTTPField

    /// Reads `Name: value`; nil without a colon, for an invalid field name (RFC 9110 §5.1), and for a value
    /// that would break out of its line.
    init?(argument: String) {
        guard let colon = argument.firstIndex(of: ":") else { return nil }
        let value = argument[argument.index(after: colon)...].trimmingCharacters(in: .whitespaces)
        guard let name = HTTPField.Name(String(argument[..<colon])), HTTPField.isValidValue(value) else { return nil }
        field = HTTPField(name: name, value: value)
    }
}

/// What `--header` takes: a field, or `@FILE` for a file of fields, which keeps them out of the list of processes.
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

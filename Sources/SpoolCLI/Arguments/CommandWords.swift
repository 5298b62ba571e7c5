#if Tools
import Foundation

/// The words of a command line that are neither options nor option values. They can be found even if the subcommand is
/// unknown.
enum CommandWords {
    /// Returns all words, in order. The first one is the subcommand.
    static func all(in arguments: [String]) -> [String] {
        var words: [String] = []
        var isValue = false
        for argument in arguments {
            if isValue {
                isValue = false
            } else if argument == "--cache" {
                isValue = true
            } else if !argument.hasPrefix("-") {
                words.append(argument)
            }
        }
        return words
    }
}

/// The form in which messages show command-line arguments, without possible secrets.
enum RedactedArgument {
    /// Returns each argument, paired with the text to show instead.
    static func all(of arguments: [String]) -> [(String, String)] {
        // The shell splits a value without quotes into several arguments.
        var isInHeader = false
        return arguments.map { argument in
            if argument.hasPrefix("-") {
                isInHeader = argument == "-H" || mayHaveSecret(argument)
                guard let equals = argument.firstIndex(of: "=") else { return (argument, argument) }
                return (argument, argument[...equals] + "…")
            }
            return (argument, isInHeader ? "…" : text(argument))
        }
    }

    /// Returns whether the value of an option may be a secret. The name of the option is sufficient, so unknown options
    /// are also recognized.
    private static func mayHaveSecret(_ option: String) -> Bool {
        let name = option.lowercased()
        return ["header", "token", "bearer", "auth", "pass", "secret", "key", "cookie", "user"].contains {
            name.contains($0)
        }
    }

    /// Returns the option that precedes a value, in a form that may be shown, or `nil` if there is none.
    static func option(before value: String, in arguments: [String]) -> String? {
        guard let place = arguments.firstIndex(of: value), place > 0 else { return nil }
        let previous = arguments[place - 1]
        guard previous.hasPrefix("-"), previous != "-", previous != "--" else { return nil }
        return previous.wholeMatch(of: /--?[A-Za-z][A-Za-z-]*/) == nil ? "whose name is not shown" : previous
    }

    /// Returns a value without its query, fragment and user information, and without the value of a header field.
    static func text(_ argument: String) -> String {
        var text = argument.prefix { $0 != "?" && $0 != "#" }
        var isCut = text.count < argument.count
        if let colon = text.firstIndex(of: ":"), !text[colon...].hasPrefix("://"), !text[colon...].allSatisfy(\.isPlain)
        {
            text = text[...colon]
            isCut = true
        }
        if let slashes = text.range(of: "//") {
            let authority = text[slashes.upperBound...].prefix { $0 != "/" }
            if let at = authority.lastIndex(of: "@") { text.removeSubrange(slashes.upperBound...at) }
        }
        if text.count > 200 { (text, isCut) = (text.prefix(200), true) }
        return text + (isCut ? "…" : "")
    }
}

extension Character {
    /// Whether the character can be part of a time or a port number.
    fileprivate var isPlain: Bool { self == ":" || self == "." || self == "-" || isNumber }
}

/// The command-line arguments as typed.
enum TypedArguments {
    /// Returns the arguments after the name of the command.
    ///
    /// - Throws: ``CommandFailure`` with code `usage` if an argument is not valid UTF-8. Swift would replace the
    ///   invalid bytes, and the result could name another file.
    static func all() throws -> [String] {
        try (1..<max(1, Int(CommandLine.argc))).compactMap { index in
            guard let bytes = CommandLine.unsafeArgv[index] else { return nil }
            guard let text = String(validatingCString: bytes) else {
                throw CommandFailure(
                    .usage, "argument \(index) is not UTF-8 text (see “spool --help”)")
            }
            return text
        }
    }
}
#endif

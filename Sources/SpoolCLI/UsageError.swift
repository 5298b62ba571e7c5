import Foundation

/// Says in one line why a command line can't be understood, and what to type instead.
///
/// Never repeats what may be a secret: the query of a URL, or the value of a header field.
struct UsageError {
    /// The line.
    let text: String

    /// - Parameters:
    ///   - message: What the parser says of it.
    ///   - arguments: What was typed.
    init(_ message: String, arguments: [String]) {
        let words = CommandWords.all(in: arguments)
        let verb = words.first
        let sentence = Verbs.correction(of: arguments) ?? Self.sentence(message, arguments)
        let help =
            verb.flatMap { verb in
                guard verb != "help", Verbs.all.contains(verb) else { return nil }
                let second = words.dropFirst().first.flatMap { Verbs.under(verb).contains($0) ? " \($0)" : nil } ?? ""
                return "spool \(verb)\(second) --help"
            } ?? "spool --help"
        text = "\(sentence) (see “\(help)”)"
    }

    private static func sentence(_ message: String, _ arguments: [String]) -> String {
        let line = message.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }
            .joined(separator: " ")
        // What follows the place repeats what is said here, or lists the values.
        if let match = line.wholeMatch(of: /The value '(.*?)' is invalid for '([^']*)'.*/) {
            let (value, place) = (String(match.1), String(match.2))
            // What was meant for an option that there is not may be a secret.
            if let option = ShownArgument.option(before: value, in: arguments), place.hasPrefix("<"),
                !Verbs.knows(option, of: CommandWords.all(in: arguments).first)
            {
                return "there is no option \(option) here"
            }
            return refusal(of: value, as: place)
        }
        if let match = line.wholeMatch(of: /Missing expected argument '(.*)'\.?/) {
            let isImport = match.1 == "<file>" && CommandWords.all(in: arguments).first == "import"
            return "\(match.1) is missing: give \(isImport ? "the file to read" : form(of: String(match.1)))"
        }
        if let match = line.wholeMatch(of: /Missing value for '(.*)'\.?/) {
            return "\(match.1) lacks its value: give \(form(of: String(match.1)))"
        }
        var text = line
        // The longest first: one may be part of another.
        for (argument, shown) in ShownArgument.all(of: arguments).sorted(by: { $0.0.count > $1.0.count })
        where argument != shown {
            text = text.replacingOccurrences(of: argument, with: shown)
        }
        if text.hasSuffix(".") { text.removeLast() }
        return (text.first?.lowercased() ?? "") + text.dropFirst()
    }

    private static func refusal(of value: String, as place: String) -> String {
        if place.contains("--header") { return "--header has a value that can't be used: give \(form(of: place))" }
        return "“\(ShownArgument.text(value))” can't be used for \(place): give \(form(of: place))"
    }

    /// What is to be given in a place of the command line.
    private static func form(of place: String) -> String {
        let forms = [
            ("--header", "“Name: value”, or @FILE for a file of such lines"),
            ("--range", "bytes as in HTTP: 0-99, 100- or -500"),
            ("--capacity", "a size such as 500MB or 2GiB, or none"),
            ("--minimum-rate", "bytes a second, such as 1000 or 50kB, or 0 for none"),
            ("--bytes", "a size such as 500kB or 2MiB"), ("--seconds", "a time in seconds"),
            ("--jobs", "a number from 1 to 256"), ("--file", "a file with one URL on each line, or -"),
            ("--to", "a size such as 500MB or 2GiB"), ("--seek", "two times in seconds, such as 5:40"),
            ("--until", "a time in seconds"), ("--speed", "a number from 0.01 to 100"),
            ("--listen", "an address and a port, such as 127.0.0.1:8787"),
            ("--admin", "an address and a port, such as 127.0.0.1:8788"),
            ("--keep-free", "a size such as 5GB"), ("--quota", "a host and a size, such as media.example.org=2GB"),
            ("--eviction", "standard, lru, largest or never"), ("--max-age", "a time such as 90s, 30m, 12h or 30d"),
            ("--freshness", "http, immutable or revalidate"), ("--origin", "a URL, such as https://example.com"),
            ("--output", "a file, or - for standard output"), ("--cache", "a directory"), ("--key-file", "a file"),
            ("--passphrase-file", "a file"),
            ("--new-key-file", "a file"), ("--new-passphrase-file", "a file"),
            ("<file>", "the file to write"),
            ("<url", "a URL with a host, such as https://example.com/film.mp4"),
        ]
        return forms.first { place.contains($0.0) }?.1 ?? "a value"
    }
}

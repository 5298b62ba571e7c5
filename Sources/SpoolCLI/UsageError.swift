#if Tools
import ArgumentParser
import Foundation

/// One line that explains why a command line is invalid, and what to type instead.
///
/// It never includes possible secrets: the query of a URL, or the value of a header field.
struct UsageError {
    /// The explanation.
    let text: String

    /// Creates the explanation.
    ///
    /// - Parameters:
    ///   - message: The parser's message.
    ///   - arguments: The arguments as typed.
    init(_ message: String, arguments: [String]) {
        let words = CommandWords.all(in: arguments)
        let name = words.first
        let sentence = CommandNames.correction(of: arguments) ?? Self.sentence(message, arguments)
        let help =
            name.flatMap { name in
                guard name != "help", CommandNames.all.contains(name) else { return nil }
                let second =
                    words.dropFirst().first.flatMap { CommandNames.under(name).contains($0) ? " \($0)" : nil } ?? ""
                return "spool \(name)\(second) --help"
            } ?? "spool --help"
        text = "\(sentence) (see “\(help)”)"
    }

    private static func sentence(_ message: String, _ arguments: [String]) -> String {
        let line = message.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }
            .joined(separator: " ")
        // The rest of the parser's message repeats the cause, or lists the allowed values.
        if let match = line.wholeMatch(of: /The value '(.*?)' is invalid for '([^']*)'.*/) {
            let (value, place) = (String(match.1), String(match.2))
            // The value after an unknown option may be a secret.
            if let option = RedactedArgument.option(before: value, in: arguments), place.hasPrefix("<"),
                !CommandNames.knows(option, of: CommandWords.all(in: arguments).first)
            {
                return "unknown option \(option)"
            }
            return refusal(of: value, as: place)
        }
        if let match = line.wholeMatch(of: /Missing expected argument '(.*)'\.?/) {
            let isImport = match.1 == "<file>" && CommandWords.all(in: arguments).first == "import"
            return "\(match.1) is missing: give \(isImport ? "the file to read" : form(of: String(match.1)))"
        }
        if let match = line.wholeMatch(of: /Missing value for '(.*)'\.?/) {
            return "\(match.1) requires a value: give \(form(of: String(match.1)))"
        }
        var text = line
        // The longest arguments are replaced first, because one argument may be part of another.
        for (argument, shown) in RedactedArgument.all(of: arguments).sorted(by: { $0.0.count > $1.0.count })
        where argument != shown {
            text = text.replacingArgument(argument, with: shown)
        }
        if text.hasSuffix(".") { text.removeLast() }
        return (text.first?.lowercased() ?? "") + text.dropFirst()
    }

    private static func refusal(of value: String, as place: String) -> String {
        if place.contains("--header") { return "invalid value for --header: give \(form(of: place))" }
        return "invalid value “\(RedactedArgument.text(value))” for \(place): give \(form(of: place))"
    }

    /// Returns the expected form of an argument.
    private static func form(of place: String) -> String {
        let forms = [
            ("--header", "“Name: value”, or @FILE for a file of such lines"),
            ("--range", "bytes as in HTTP: 0-99, 100- or -500"),
            ("--capacity", "a size such as 500MB or 2GiB, or “none” for no limit"),
            ("--low-speed-limit", "bytes per second, such as 1000 or 50kB, or 0 for no limit"),
            ("--bytes", "a size such as 500kB or 2MiB"), ("--seconds", "a time in seconds"),
            ("--jobs", "a number from 1 to 256"), ("--file", "a file with one URL on each line, or -"),
            ("--to", "a size such as 500MB or 2GiB"), ("--seek", "AT:TO in seconds, such as 5:40"),
            ("--until", "a time in seconds"), ("--speed", "a number from 0.01 to 100"),
            ("--listen", "an address and a port, such as 127.0.0.1:8787"),
            ("--admin", "an address and a port, such as 127.0.0.1:8788"),
            ("--keep-free", "a size such as 5GB"), ("--quota", "a host and a size, such as media.example.org=2GB"),
            ("--eviction", "standard, lru, largest or never"), ("--max-age", "a time such as 90s, 30m, 12h or 30d"),
            ("--response-timeout", "a time such as 90s"),
            ("--freshness", "http, immutable or revalidate"), ("--origin", "a URL, such as https://example.com"),
            ("--output", "a file, or - for standard output"), ("--cache", "a directory"), ("--key-file", "a file"),
            ("--passphrase-file", "a file"),
            ("--new-key-file", "a file"), ("--new-passphrase-file", "a file"),
            ("--variant", "highest, lowest, bits per second, or a resolution such as 1280x720"),
            ("--maximum-redirects", "a number, 0 or greater"), ("--token", "a token of letters, digits and -._~"),
            ("--token-file", "a file with the token"), ("--node", "a name"), ("--server-name", "a host name"),
            ("--allow-host", "a host, such as example.com or *.example.com"),
            ("--cors-origin", "an origin, such as https://player.example"),
            ("--trusted-proxy", "an IP address or a block, such as 10.0.0.0/8"),
            ("--max-connections-per-client", "a number, 1 or greater"),
            ("--max-connections-per-origin", "a number, 1 or greater"), ("--request-directives", "follow or ignore"),
            ("<file>", "the file to write"), ("<set>", "the set's name"),
            ("<url", "an http or https URL with a host, such as https://example.com/video.mp4"),
        ]
        let words = place.split(separator: " ")
        return forms.first { name, _ in
            words.contains(Substring(name)) || name.hasPrefix("<") && place.contains(name)
        }?.1 ?? "a value"
    }
}

extension String {
    /// Returns the text with each occurrence of an argument replaced, unless it is a part of a longer word.
    fileprivate func replacingArgument(_ argument: String, with shown: String) -> String {
        func isPartOfWord(_ character: Character?) -> Bool {
            character.map { $0.isLetter || $0.isNumber || "-_".contains($0) } ?? false
        }
        var (result, rest) = ("", self[...])
        while let place = rest.range(of: argument) {
            let before = rest[..<place.lowerBound].last ?? result.last
            let after = rest[place.upperBound...].first
            result += rest[..<place.lowerBound]
            result += isPartOfWord(before) || isPartOfWord(after) ? argument : shown
            rest = rest[place.upperBound...]
        }
        return result + rest
    }
}

/// The subcommands, and suggestions for unknown ones.
enum CommandNames {
    /// The names of the subcommands.
    static var all: [String] { SpoolCommand.configuration.subcommands.map { $0._commandName } + ["help"] }

    /// Returns the names of the subcommands of a subcommand.
    static func under(_ name: String) -> [String] {
        command(name)?.configuration.subcommands.map { $0._commandName } ?? []
    }

    /// Returns whether a subcommand, or one of its own subcommands, has an option.
    static func knows(_ option: String, of name: String?) -> Bool {
        guard let command = name.flatMap(command) else { return false }
        return ([command] + command.configuration.subcommands).contains { command in
            command.helpMessage().split { !$0.isLetter && $0 != "-" }.contains { $0 == option }
        }
    }

    private static func command(_ name: String) -> (any ParsableCommand.Type)? {
        SpoolCommand.configuration.subcommands.first { $0._commandName == name }
    }

    private static let others = [
        "list": "ls", "dir": "ls", "show": "info", "status": "info", "fetch": "get", "download": "get", "cat": "get",
        "open": "play", "watch": "play", "delete": "rm", "remove": "rm", "del": "rm", "clean": "gc", "evict": "gc",
        "prune": "gc", "copy": "export", "save": "export", "check": "verify", "fsck": "verify", "keep": "pin",
        "release": "unpin", "prefetch": "preload", "warm": "preload",
        "encrypt": "rekey", "decrypt": "rekey",
    ]

    /// Returns a suggestion for an unknown word that was typed as a subcommand, or after `help`.
    ///
    /// - Returns: `nil` if there is no such word.
    static func correction(of arguments: [String]) -> String? {
        // The word that follows this option of swift-argument-parser is not a subcommand.
        if arguments.first == "--generate-completion-script" { return nil }
        let words = CommandWords.all(in: arguments).prefix(2)
        return (words.first == "help" ? words.last : words.first).flatMap { correction(of: $0) }
    }

    private static func correction(of word: String) -> String? {
        guard !all.contains(word) else { return nil }
        let shown = RedactedArgument.text(word)
        if word.contains("/") || word.contains(".") {
            return "unknown command “\(shown)”; type a command before it, such as “spool get URL” or “spool play URL”"
        }
        if let near = others[word.lowercased()] ?? nearest(to: word.lowercased()) {
            return "unknown command “\(shown)”; did you mean “\(near)”?"
        }
        return "unknown command “\(shown)”; the commands are \(all.joined(separator: ", "))"
    }

    private static func nearest(to word: String) -> String? {
        let near = all.map { (name: $0, distance: distance(word, $0)) }.min { $0.distance < $1.distance }
        guard let near, near.distance <= 2, near.distance < word.count else { return nil }
        return near.name
    }

    /// Returns the number of letters to insert, remove or change (Levenshtein distance).
    private static func distance(_ left: String, _ right: String) -> Int {
        let right = Array(right)
        var row = Array(0...right.count)
        for (i, a) in left.enumerated() {
            var diagonal = row[0]
            row[0] = i + 1
            for (j, b) in right.enumerated() {
                let next = min(row[j] + 1, row[j + 1] + 1, diagonal + (a == b ? 0 : 1))
                diagonal = row[j + 1]
                row[j + 1] = next
            }
        }
        return row[right.count]
    }
}
#endif

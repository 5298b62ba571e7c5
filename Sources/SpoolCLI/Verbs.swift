import ArgumentParser

/// The command's verbs, and what was probably meant by a word that is none of them.
enum Verbs {
    /// The verbs, as they are typed.
    static var all: [String] { SpoolCommand.configuration.subcommands.map { $0._commandName } + ["help"] }

    /// The verbs that stand behind a verb.
    static func under(_ verb: String) -> [String] {
        command(verb)?.configuration.subcommands.map { $0._commandName } ?? []
    }

    /// Whether a verb, or one behind it, has an option.
    static func knows(_ option: String, of verb: String?) -> Bool {
        guard let command = verb.flatMap(command) else { return false }
        return ([command] + command.configuration.subcommands).contains { command in
            command.helpMessage().split { !$0.isLetter && $0 != "-" }.contains { $0 == option }
        }
    }

    private static func command(_ verb: String) -> (any ParsableCommand.Type)? {
        SpoolCommand.configuration.subcommands.first { $0._commandName == verb }
    }

    private static let others = [
        "list": "ls", "dir": "ls", "show": "info", "status": "info", "fetch": "get", "download": "get", "cat": "get",
        "open": "play", "watch": "play", "delete": "rm", "remove": "rm", "del": "rm", "clean": "gc", "evict": "gc",
        "prune": "gc", "copy": "export", "save": "export", "check": "verify", "fsck": "verify", "keep": "pin",
        "release": "unpin", "prefetch": "preload", "warm": "preload",
        "encrypt": "rekey", "decrypt": "rekey",
    ]

    /// What to type instead of a word that stands where a verb should, also after `help`, and is none; nil if there is
    /// no such word.
    static func correction(of arguments: [String]) -> String? {
        // The one option that has a word behind it without a verb: swift-argument-parser's own.
        if arguments.first == "--generate-completion-script" { return nil }
        let words = CommandWords.all(in: arguments).prefix(2)
        return (words.first == "help" ? words.last : words.first).flatMap { correction(of: $0) }
    }

    private static func correction(of word: String) -> String? {
        guard !all.contains(word) else { return nil }
        let shown = ShownArgument.text(word)
        if word.contains("/") || word.contains(".") {
            return "“\(shown)” is no verb: type one before it, such as “spool get URL” or “spool play URL”"
        }
        if let near = others[word.lowercased()] ?? nearest(to: word.lowercased()) {
            return "“\(shown)” is no verb of spool; did you mean “\(near)”?"
        }
        return "“\(shown)” is no verb of spool: type one of \(all.joined(separator: ", "))"
    }

    private static func nearest(to word: String) -> String? {
        let near = all.map { (verb: $0, distance: distance(word, $0)) }.min { $0.distance < $1.distance }
        guard let near, near.distance <= 2, near.distance < word.count else { return nil }
        return near.verb
    }

    /// How many letters to insert, leave out or change (Levenshtein).
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

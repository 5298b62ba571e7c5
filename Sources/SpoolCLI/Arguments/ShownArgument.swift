import Foundation

/// Shows a command line's arguments in a message without what may be a secret.
enum ShownArgument {
    /// Each argument with the text to show in its place.
    static func all(of arguments: [String]) -> [(String, String)] {
        // A value without quotes falls apart into several arguments.
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

    /// Whether what stands behind an option is nobody's business: also behind one that there is not.
    private static func mayHaveSecret(_ option: String) -> Bool {
        let name = option.lowercased()
        return ["header", "token", "bearer", "auth", "pass", "secret", "key", "cookie", "user"].contains {
            name.contains($0)
        }
    }

    /// The option that a value stands behind, as far as it can be shown; nil if it stands behind none.
    static func option(before value: String, in arguments: [String]) -> String? {
        guard let place = arguments.firstIndex(of: value), place > 0 else { return nil }
        let former = arguments[place - 1]
        guard former.hasPrefix("-"), former != "-", former != "--" else { return nil }
        return former.wholeMatch(of: /--?[A-Za-z][A-Za-z-]*/) == nil ? "of that name" : former
    }

    /// One value: without query, fragment and user information, and without what follows a field's name.
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
    /// Whether it can be part of a time or a port.
    fileprivate var isPlain: Bool { self == ":" || self == "." || self == "-" || isNumber }
}

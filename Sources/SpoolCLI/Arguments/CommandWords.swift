/// The words of a command line that are neither options nor options' values, before anything is known of the verb.
enum CommandWords {
    /// All of them, in order; the first one is the verb.
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

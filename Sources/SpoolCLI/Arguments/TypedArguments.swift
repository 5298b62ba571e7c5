import Foundation

/// The command line, as it was typed.
enum TypedArguments {
    /// The arguments behind the command's own name.
    ///
    /// - Throws: ``CommandFailure`` with code `usage` where one is no text in UTF-8: Swift would put other characters in
    ///   the place of its bytes, and so name another file.
    static func all() throws -> [String] {
        try (1..<max(1, Int(CommandLine.argc))).compactMap { index in
            guard let bytes = CommandLine.unsafeArgv[index] else { return nil }
            guard let text = String(validatingCString: bytes) else {
                throw CommandFailure(
                    .usage, "argument \(index) is no text in UTF-8, which is all that spool reads (see “spool --help”)")
            }
            return text
        }
    }
}

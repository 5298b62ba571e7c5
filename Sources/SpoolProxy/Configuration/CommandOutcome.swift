#if Proxy
/// What a command printed that a server ran for another process, and how it ended.
package struct CommandOutcome: Codable, Sendable, Hashable {
    /// Standard output.
    package var output: String
    /// Standard error.
    package var errors: String
    /// The exit status.
    package var status: Int32

    /// An outcome.
    package init(output: String, errors: String, status: Int32) {
        self.output = output
        self.errors = errors
        self.status = status
    }
}

/// A command line for a server to run.
package struct CommandCall: Codable, Sendable {
    /// The words after the command's name.
    package var arguments: [String]

    /// A command line.
    package init(arguments: [String]) { self.arguments = arguments }
}
#endif

/// Says why a command could not do what was asked, where the library has no error for it.
struct CommandFailure: Error {
    /// A sentence, beginning in lower case.
    var message: String
}

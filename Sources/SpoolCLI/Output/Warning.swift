/// What a person must know of a command that goes on nevertheless; docs/errors.md has a row for each.
enum Warning: String, CaseIterable, Sendable {
    /// Nothing new is kept, or a damaged catalog was set aside: found at opening.
    case opening
    /// What is played or fetched is not being kept.
    case notKept
    /// The media has changed at its origin.
    case changed
    /// Stored bytes were damaged, and are fetched again.
    case damaged
    /// Other users can read a file of header fields, a key or a passphrase.
    case readableSecret
    /// The player could not jump there.
    case noJump

    /// Says it on standard error.
    func tell(_ text: String) { Output.remark("warning: " + text.abbreviated) }
}

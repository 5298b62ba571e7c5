import Foundation

/// The keys that are pressed, one by one; what the terminal was before comes back with the end.
final class Terminal: Sendable {
    let keys: AsyncStream<Character>
    private let sending: AsyncStream<Character>.Continuation
    private let former: termios?

    init() {
        (keys, sending) = AsyncStream.makeStream()
        var mode = termios()
        former = tcgetattr(STDIN_FILENO, &mode) == 0 ? mode : nil  // A pipe has none.
        mode.c_lflag &= ~tcflag_t(ICANON | ECHO)
        if former != nil { tcsetattr(STDIN_FILENO, TCSANOW, &mode) }
        Thread.detachNewThread { [sending] in
            // Nothing more than a byte at a time: each is a key.
            while let byte = try? FileHandle.standardInput.read(upToCount: 1)?.first {
                sending.yield(Character(Unicode.Scalar(byte)))
            }
        }
    }

    deinit { finish() }

    /// Shows a text in place of the line that the cursor is in.
    func show(_ text: String) { FileHandle.standardOutput.write(Data("\r\(text)\u{1B}[K".utf8)) }

    /// Ends the keys.
    func finish() {
        sending.finish()
        if var former { tcsetattr(STDIN_FILENO, TCSANOW, &former) }
    }
}

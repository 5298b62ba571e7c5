@preconcurrency import Dispatch
import Foundation

/// The keys that are pressed, one by one; what the terminal was before comes back with the end.
final class Terminal: Sendable {
    let keys: AsyncStream<Character>
    private let sending: AsyncStream<Character>.Continuation
    private let former: termios?
    private let signals: [any DispatchSourceSignal]

    init() {
        (keys, sending) = AsyncStream.makeStream()
        // By itself a signal would leave the terminal without echo: it ends the keys, as `q` does.
        signals = [SIGINT, SIGTERM].map { [sending] number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler { sending.finish() }
            source.resume()
            return source
        }
        var mode = termios()
        former = tcgetattr(STDIN_FILENO, &mode) == 0 ? mode : nil  // A pipe has none.
        mode.c_lflag &= ~tcflag_t(ICANON | ECHO)
        if former != nil { tcsetattr(STDIN_FILENO, TCSANOW, &mode) }
        Thread.detachNewThread { [sending] in
            // A byte at a time, each a key. Where none can be read, no more come, and the player plays on.
            while let byte = try? FileHandle.standardInput.read(upToCount: 1)?.first {
                sending.yield(Character(Unicode.Scalar(byte)))
            }
        }
    }

    deinit { finish() }

    /// Shows a text in place of the line that the cursor is in: what fits, since the rest of it would stay in another row.
    func show(_ text: String) {
        var size = winsize()
        let isKnown = ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0
        var room = (isKnown ? Int(size.ws_col) : 80) - 1
        let line = Self.printable(text).prefix { character in
            // Others may take two columns.
            room -= character.isASCII || "━─·".contains(character) ? 1 : 2
            return room >= 0
        }
        FileHandle.standardOutput.write(Data("\r\(line)\u{1B}[K".utf8))
    }

    /// Ends the keys.
    func finish() {
        sending.finish()
        if var former { tcsetattr(STDIN_FILENO, TCSANOW, &former) }
    }

    /// A text without what a terminal would obey, such as an ESC in a file's name.
    static func printable(_ text: String) -> String {
        text.components(separatedBy: .controlCharacters).joined(separator: "?")
    }
}

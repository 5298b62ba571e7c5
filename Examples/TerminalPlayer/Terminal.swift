@preconcurrency import Dispatch
import Foundation

/// The terminal, and the keys that the user presses. The previous mode of the terminal is restored at the end.
final class Terminal: Sendable {
    let keys: AsyncStream<Character>
    private let sending: AsyncStream<Character>.Continuation
    private let previous: termios?
    private let signals: [any DispatchSourceSignal]

    init() {
        (keys, sending) = AsyncStream.makeStream()
        // By default, a signal would end the program and leave the terminal without echo. Here, it ends the stream of
        // keys, just as `q` does.
        signals = [SIGINT, SIGTERM].map { [sending] number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler { sending.finish() }
            source.resume()
            return source
        }
        var mode = termios()
        previous = tcgetattr(STDIN_FILENO, &mode) == 0 ? mode : nil  // A pipe has no mode.
        mode.c_lflag &= ~tcflag_t(ICANON | ECHO)
        if previous != nil { tcsetattr(STDIN_FILENO, TCSANOW, &mode) }
        Thread.detachNewThread { [sending] in
            // Each byte is a key. If reading fails, there are no more keys, and the player continues.
            while let byte = try? FileHandle.standardInput.read(upToCount: 1)?.first {
                sending.yield(Character(Unicode.Scalar(byte)))
            }
        }
    }

    deinit { finish() }

    /// Replaces the current row with text, which is truncated to the width of the terminal. Otherwise, text in the next
    /// row would remain on the screen.
    func show(_ text: String) {
        var size = winsize()
        let isKnown = ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0
        var room = (isKnown ? Int(size.ws_col) : 80) - 1
        let line = Self.printable(text).prefix { character in
            // All other characters may occupy two columns.
            room -= character.isASCII || "━─·".contains(character) ? 1 : 2
            return room >= 0
        }
        FileHandle.standardOutput.write(Data("\r\(line)\u{1B}[K".utf8))
    }

    /// Ends the stream of keys, and restores the terminal.
    func finish() {
        sending.finish()
        if var previous { tcsetattr(STDIN_FILENO, TCSANOW, &previous) }
    }

    /// Returns text, such as a file name, in which `?` replaces control characters such as ESC.
    static func printable(_ text: String) -> String {
        text.components(separatedBy: .controlCharacters).joined(separator: "?")
    }
}

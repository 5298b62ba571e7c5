import Foundation
import Spool

/// Standard output for what was asked for, standard error for everything said beside it.
///
/// Whatever is printed may hold text from elsewhere: a type, a tag, a path. So nothing gets to a terminal but as it is
/// seen; see ``Swift/StringProtocol/shown``.
enum Output {
    /// Whether a person watches standard error.
    static var isWatched: Bool { captured == nil && isatty(STDERR_FILENO) == 1 }

    /// What takes the place of standard output and error, for a command that is run for another process.
    @TaskLocal static var captured: CapturedOutput?

    /// Whether a line at standard error can be drawn anew: not on a terminal that knows no more than a printer.
    static var canDraw: Bool { isWatched && canDraw(terminal: ProcessInfo.processInfo.environment["TERM"]) }

    /// Whether the kind of terminal that `TERM` names understands what ``draw(_:)`` sends.
    static func canDraw(terminal: String?) -> Bool { !["", "dumb"].contains(terminal ?? "") }

    /// Columns of the terminal at standard error.
    static var columns: Int { columns(of: STDERR_FILENO) ?? 80 }

    /// Columns of the terminal at a descriptor; nil if none is there, or it does not say.
    static func columns(of descriptor: Int32) -> Int? {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
        return Int(size.ws_col)
    }

    /// Prints lines of the response; a newline in `text` ends one.
    ///
    /// - Throws: ``CommandFailure``: `unwritable`, or `outputClosed` when nobody reads any more.
    static func line(_ text: String) throws {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(\.shown)
        try write(Array((lines.joined(separator: "\n") + "\n").utf8))
    }

    /// Prints the response as one line of JSON.
    static func json(_ value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .iso8601
        try write(Array((String(decoding: try encoder.encode(value), as: UTF8.self).shownInJSON + "\n").utf8))
    }

    /// Writes bytes to standard output.
    ///
    /// - Throws: As ``line(_:)`` does.
    static func write(_ bytes: some ContiguousBytes) throws {
        let code = bytes.withUnsafeBytes { write($0, to: STDOUT_FILENO) }
        if code == EPIPE { throw CommandFailure(.outputClosed, "nobody reads standard output any more") }
        if code != 0 { throw unwritable("standard output", code) }
    }

    /// Says something on standard error, on one line.
    static func remark(_ text: String) {
        tell(text.split(whereSeparator: \.isNewline).joined(separator: " ").shown + "\n")
    }

    /// Draws the last line of a terminal anew, without ending it.
    static func draw(_ text: String) { tell("\r\(text.shown)\u{1B}[K") }

    /// The error of a failed write.
    static func unwritable(_ name: String, _ code: Int32) -> CommandFailure {
        CommandFailure(.unwritable, "\(name) can't be written: \(systemCause(code))")
    }

    private static func tell(_ text: String) {
        // Nobody reads any more: there is nowhere left to report it.
        _ = Array(text.utf8).withUnsafeBytes { write($0, to: STDERR_FILENO) }
    }

    /// Writes all of the bytes, however long that takes; blocks.
    ///
    /// - Returns: The system's error; 0 if all was written.
    static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Int32 {
        if let captured, captured.take(bytes, for: descriptor) { return 0 }
        var bytes = bytes[...]
        while !bytes.isEmpty {
            let written = Foundation.write(descriptor, UnsafeRawBufferPointer(rebasing: bytes).baseAddress, bytes.count)
            if written < 0, errno == EINTR { continue }
            if written < 0, errno == EAGAIN {
                // Whoever shares the pipe or terminal does not want to wait, and has made it so for all.
                var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                // Whatever becomes of the wait, the next write tells.
                _ = poll(&wanted, 1, -1)
                continue
            }
            guard written > 0 else { return written < 0 ? errno : EIO }
            bytes = bytes.dropFirst(written)
        }
        return 0
    }
}

/// The system's words for an `errno`.
func systemCause(_ code: Int32) -> String {
    // strerror responds from constant strings for known codes: no data race to fear.
    strerror(code).map { String(cString: $0).lowercased() } ?? "the system gives no reason"
}

extension Range<Int64> {
    /// `[start, end]`, as JSON has no ranges; the end is not part of it.
    var pair: [Int64] { [lowerBound, upperBound] }
}

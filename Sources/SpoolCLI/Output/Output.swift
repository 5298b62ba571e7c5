#if Tools
import Foundation
import Spool
import Synchronization

/// The output of commands. Results go to standard output, and all other text goes to standard error.
///
/// Printed text may come from other sources, such as a media type, a tag or a path. Therefore, it is escaped for the
/// terminal; see ``Swift/StringProtocol/shown``.
enum Output {
    /// Whether standard error is a terminal.
    static var isErrorTerminal: Bool { captured == nil && isatty(STDERR_FILENO) == 1 }

    /// Whether standard output is a terminal.
    static var isOutputTerminal: Bool { captured == nil && isatty(STDOUT_FILENO) == 1 }

    /// The receiver of the output while a command runs for another process. It replaces standard output and error.
    @TaskLocal static var captured: CapturedOutput?

    /// Whether a line on standard error can be redrawn. This is not possible on a dumb terminal.
    static var canDraw: Bool { isErrorTerminal && canDraw(terminal: ProcessInfo.processInfo.environment["TERM"]) }

    /// Returns whether the terminal type in `TERM` supports the control sequences of ``draw(_:)``.
    static func canDraw(terminal: String?) -> Bool { !["", "dumb"].contains(terminal ?? "") }

    /// The number of columns of the terminal on standard error.
    static var columns: Int { columns(of: STDERR_FILENO) ?? 80 }

    /// Returns the number of columns of the terminal at a descriptor, or `nil` if there is no terminal or its size is
    /// unknown.
    static func columns(of descriptor: Int32) -> Int? {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
        return Int(size.ws_col)
    }

    /// Prints lines of the result. Newlines in `text` separate lines.
    ///
    /// - Throws: ``CommandFailure`` with code `unwritable`, or `outputClosed` if the reader has closed the pipe.
    static func line(_ text: String) throws {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(\.shown)
        try write(Array((lines.joined(separator: "\n") + "\n").utf8))
    }

    /// Prints the result as one line of JSON.
    static func json(_ value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .iso8601
        try write(Array((String(decoding: try encoder.encode(value), as: UTF8.self).shownInJSON + "\n").utf8))
    }

    /// Writes bytes to standard output.
    ///
    /// - Throws: The same errors as ``line(_:)``.
    static func write(_ bytes: some ContiguousBytes) throws {
        let code = bytes.withUnsafeBytes { write($0, to: STDOUT_FILENO) }
        if code == EPIPE { throw CommandFailure(.outputClosed, "standard output is closed") }
        if code != 0 { throw unwritable("standard output", code) }
    }

    /// Writes one line to standard error.
    static func remark(_ text: String) {
        report(text.split(whereSeparator: \.isNewline).joined(separator: " ").shown + "\n")
    }

    /// Redraws the last line of a terminal, without a line break.
    static func draw(_ text: String) { report("\r\(text.shown)\u{1B}[K") }

    /// Returns the error for a failed write.
    static func unwritable(_ name: String, _ code: Int32) -> CommandFailure {
        CommandFailure(.unwritable, "\(name) can't be written: \(systemCause(code))")
    }

    private static func report(_ text: String) {
        // If standard error can't be written, the error can't be reported anywhere else.
        _ = Array(text.utf8).withUnsafeBytes { write($0, to: STDERR_FILENO) }
    }

    /// Writes all bytes, and blocks the thread for as long as necessary.
    ///
    /// - Returns: The system's error, or 0 if all bytes were written.
    static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Int32 {
        if let captured, captured.take(bytes, for: descriptor) { return 0 }
        var bytes = bytes[...]
        while !bytes.isEmpty {
            let written = Foundation.write(descriptor, UnsafeRawBufferPointer(rebasing: bytes).baseAddress, bytes.count)
            if written < 0, errno == EINTR { continue }
            if written < 0, errno == EAGAIN {
                // Another process that shares the pipe or terminal has made it non-blocking.
                var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                // After a failed wait, the next write reports the error.
                _ = poll(&wanted, 1, -1)
                continue
            }
            guard written > 0 else { return written < 0 ? errno : EIO }
            bytes = bytes.dropFirst(written)
        }
        return 0
    }
}

/// Returns the system's text for an `errno`.
func systemCause(_ code: Int32) -> String {
    // For known codes, strerror returns constant strings, so there is no data race.
    strerror(code).map { String(cString: $0).lowercased() } ?? "unknown cause"
}

extension Range<Int64> {
    /// The bounds as `[start, end]`, with an exclusive end, because JSON has no ranges.
    var pair: [Int64] { [lowerBound, upperBound] }
}

/// The output of a command that runs in this process for another one.
final class CapturedOutput: Sendable {
    private let texts = Mutex((output: [UInt8](), errors: [UInt8]()))

    /// Appends bytes for standard output or error. Returns `false` for other descriptors.
    func take(_ bytes: UnsafeRawBufferPointer, for descriptor: Int32) -> Bool {
        switch descriptor {
        case STDOUT_FILENO: texts.withLock { $0.output.append(contentsOf: bytes) }
        case STDERR_FILENO: texts.withLock { $0.errors.append(contentsOf: bytes) }
        default: return false
        }
        return true
    }

    var output: String { texts.withLock { String(decoding: $0.output, as: UTF8.self) } }
    var errors: String { texts.withLock { String(decoding: $0.errors, as: UTF8.self) } }
}

extension StringProtocol {
    /// The text in a form that is safe to show on a terminal.
    ///
    /// Characters that a terminal would interpret are replaced by their numbers, such as `\u{1B}`. These are control
    /// characters (C0, DEL, C1), line separators, and characters that are invisible or change the direction of text.
    /// Joiners are retained, because scripts and emoji need them.
    var shown: String {
        guard unicodeScalars.contains(where: \.acts) else { return String(self) }
        return unicodeScalars.reduce(into: "") { text, scalar in
            if scalar.acts {
                text += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
            } else {
                text.unicodeScalars.append(scalar)
            }
        }
    }

    /// The text with very long words, such as a URL of several kilobytes, shortened in the middle.
    var abbreviated: String {
        split(separator: " ", omittingEmptySubsequences: false)
            .map { $0.count > 300 ? "\($0.prefix(200))…\($0.suffix(60))" : String($0) }
            .joined(separator: " ")
    }

    /// The JSON text with the same characters escaped as in ``shown``, such as `\u001b`. They occur only in strings.
    var shownInJSON: String {
        guard unicodeScalars.contains(where: \.acts) else { return String(self) }
        return unicodeScalars.reduce(into: "") { text, scalar in
            guard scalar.acts else { return text.unicodeScalars.append(scalar) }
            for unit in String(scalar).utf16 {
                let digits = String(unit, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }
        }
    }
}

extension Unicode.Scalar {
    fileprivate var acts: Bool {
        switch properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        // The exceptions are the zero-width joiner and non-joiner.
        case .format: value != 0x200C && value != 0x200D
        default: false
        }
    }
}
#endif

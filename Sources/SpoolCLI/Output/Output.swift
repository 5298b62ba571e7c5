import Foundation

/// Standard output for what was asked for, standard error for everything said beside it.
enum Output {
    /// Whether a person watches standard error.
    static var isWatched: Bool { isatty(STDERR_FILENO) == 1 }

    /// Columns of the terminal at standard error.
    static var columns: Int {
        var size = winsize()
        guard ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }

    /// Prints one line of the response.
    static func line(_ text: String) { write(text + "\n", to: STDOUT_FILENO) }

    /// Prints the response as one line of JSON.
    static func json(_ value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .iso8601
        line(String(decoding: try encoder.encode(value), as: UTF8.self))
    }

    /// Says something on standard error, on one line.
    static func remark(_ text: String) {
        write(text.split(whereSeparator: \.isNewline).joined(separator: " ") + "\n", to: STDERR_FILENO)
    }

    /// Writes to a terminal without ending the line.
    static func draw(_ text: String) { write(text, to: STDERR_FILENO) }

    private static func write(_ text: String, to descriptor: Int32) {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let written = bytes.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if written < 0 && errno == EINTR { continue }
            // Nobody reads any more: there is nowhere left to report it.
            guard written > 0 else { return }
            bytes = bytes.dropFirst(written)
        }
    }
}

extension Range<Int64> {
    /// `[start, end]`, as JSON has no ranges; the end is not part of it.
    var pair: [Int64] { [lowerBound, upperBound] }
}

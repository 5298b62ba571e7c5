#if Proxy
package import Foundation
import Synchronization

/// The changes that the operator may make on the live page, and the settings that the page shows.
package struct OperatorSettings: Sendable {
    /// A setting of the server or the cache.
    package struct Setting: Encodable, Sendable, Hashable {
        /// The source of a value.
        package enum Source: String, Encodable, Sendable {
            case commandLine, `default`, page
            /// The cache directory, in which an earlier server recorded the value.
            case directory
        }

        /// The value of a setting.
        package enum Value: Encodable, Sendable, Hashable {
            case text(String)
            case number(Int64)
            case list([String])
            case none

            /// Encodes a string, a number, an array or `null`.
            package func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                switch self {
                case .text(let text): try container.encode(text)
                case .number(let number): try container.encode(number)
                case .list(let list): try container.encode(list)
                case .none: try container.encodeNil()
                }
            }
        }

        /// The name, such as `capacity`.
        package var name: String
        package var value: Value
        package var source: Source
        /// Whether the page can change the setting.
        package var editable: Bool
        /// The allowed values, or `null` if other values are also allowed.
        @EncodedAsNull package var choices: [String]?
        /// The command-line option for the setting, such as `--capacity`, or `null` if there is none.
        @EncodedAsNull package var option: String?

        /// Creates a setting.
        package init(
            _ name: String, _ value: Value, _ source: Source, editable: Bool = false, choices: [String]? = nil,
            option: String? = nil
        ) {
            (self.name, self.value, self.source, self.editable) = (name, value, source, editable)
            _choices = EncodedAsNull(wrappedValue: choices)
            _option = EncodedAsNull(wrappedValue: option)
        }

        /// A sentence that states why the page can't change the setting, and how to change it.
        var restartAdvice: String {
            let option = option ?? "its option"
            return source == .commandLine
                ? "the command line sets “\(name)” with \(option); to change it, restart the server with another value"
                : "“\(name)” can't be changed while the server runs; restart the server with \(option)"
        }
    }

    /// The token that requests for changes must contain. It is never shown.
    package var token: OperatorToken
    /// The settings. The server replaces the values of `capacity` and `allowedHosts` with the current ones.
    package var settings: [Setting]

    /// Creates settings.
    package init(token: OperatorToken, settings: [Setting] = []) {
        (self.token, self.settings) = (token, settings)
    }
}

/// The names of the settings that were changed on the page.
final class ChangedSettings: Sendable {
    private let names = Mutex<Set<String>>([])

    func contains(_ name: String) -> Bool { names.withLock { $0.contains(name) } }

    func insert(_ name: String) { names.withLock { _ = $0.insert(name) } }
}

/// The operator's token: 256 random bits, in hexadecimal digits.
package struct OperatorToken: Sendable, Hashable, CustomStringConvertible {
    /// The token itself. Do not log it.
    package let text: String

    /// A placeholder, so that messages never contain the token itself.
    package var description: String { "(operator's token)" }

    /// Creates a random token.
    package static func random() -> OperatorToken {
        var generator = SystemRandomNumberGenerator()
        let words = (0..<4).map { _ in String(generator.next() as UInt64, radix: 16) }
        return OperatorToken(text: words.map { String(repeating: "0", count: 16 - $0.count) + $0 }.joined())
    }

    private init(text: String) { self.text = text }

    /// Creates a token from its digits. The result is `nil` if the text is not a token.
    package init?(_ text: String) {
        let digits = text.utf8
        guard digits.count == 64, digits.allSatisfy({ (48...57).contains($0) || (97...102).contains($0) }) else {
            return nil
        }
        self.text = text
    }

    /// Returns the token in a file. If the file is missing or invalid, the method creates it with a new token. Only the
    /// owner of the file can read it.
    ///
    /// - Throws: An error from the file system.
    package static func stored(in file: URL) throws -> OperatorToken {
        if let text = try? String(contentsOf: file, encoding: .utf8),  // A missing or invalid file is replaced.
            let token = OperatorToken(text.trimmingCharacters(in: .whitespacesAndNewlines))
        {
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path)
            return token
        }
        let token = Self.random()
        // The file's mode must be correct before the file has any content.
        let partial = file.path + ".partial"
        unlink(partial)
        let descriptor = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        try handle.write(contentsOf: Data((token.text + "\n").utf8))
        try handle.close()
        guard rename(partial, file.path) == 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        return token
    }
}
#endif

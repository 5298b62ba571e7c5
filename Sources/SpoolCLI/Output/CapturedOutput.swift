import Foundation
import Synchronization

/// What a command prints that runs in one process for another.
final class CapturedOutput: Sendable {
    private let texts = Mutex((output: [UInt8](), errors: [UInt8]()))

    /// Takes what is meant for standard output or error; false for any other descriptor.
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

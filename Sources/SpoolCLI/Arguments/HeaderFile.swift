import Foundation
import HTTPTypes

/// A file of header fields, one `Name: value` on a line; blank lines and those that begin with `#` are passed over.
struct HeaderFile {
    /// The fields, in their order.
    private(set) var fields: [HTTPField] = []
    /// Whether other users of the machine can read the file, which may hold a token.
    let isReadableByOthers: Bool

    private static let limit = 1 << 20

    /// Reads the file at `path`; `-` is standard input. Blocks, on a pipe until somebody has written it.
    ///
    /// - Throws: ``CommandFailure`` with code `headerFile`, which says nothing of what a line holds.
    init(path: String) throws {
        let descriptor = path == "-" ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Self.failure(path, "can't be read: \(systemCause(errno))") }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw Self.failure(path, "can't be read: \(systemCause(errno))") }
        guard status.st_mode & S_IFMT != S_IFDIR else { throw Self.failure(path, "can't be read: it is a directory") }
        isReadableByOthers = status.st_mode & S_IFMT == S_IFREG && status.st_mode & 0o044 != 0
        let data: Data
        do {
            data = try handle.read(upToCount: Self.limit + 1) ?? Data()
        } catch {
            // Foundation's own sentence is about its domains and numbers.
            let cause = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError
            let code = cause.flatMap { $0.domain == NSPOSIXErrorDomain ? Int32(exactly: $0.code) : nil }
            throw Self.failure(path, "can't be read: \(systemCause(code ?? EIO))")
        }
        guard data.count <= Self.limit else { throw Self.failure(path, "is too large: it may have 1 MiB") }
        guard let text = String(data: data, encoding: .utf8) else { throw Self.failure(path, "is no text in UTF-8") }
        let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        for (index, line) in lines.enumerated() {
            let line = line.trimmingCharacters(in: .whitespaces)
            if line.isEmpty || line.hasPrefix("#") { continue }
            guard let header = HeaderArgument(argument: line) else {
                throw Self.failure(path, "has no “Name: value” in line \(index + 1)")
            }
            fields.append(header.field)
        }
    }

    private static func failure(_ path: String, _ cause: String) -> CommandFailure {
        CommandFailure(.headerFile, "the header file “\(path)” \(cause)")
    }
}

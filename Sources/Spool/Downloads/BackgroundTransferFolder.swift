package import Foundation
import HTTPRanges
package import HTTPTypes
import SpoolStorage
import Synchronization

/// The folder in which a background session keeps received files and their responses, until they are removed.
///
/// The folder does not track running transfers, and does not check responses. All methods block. A file counts as
/// received when both the file and its response are stored, so files that a killed process left incomplete do not
/// count.
package final class BackgroundTransferFolder: Sendable {
    /// The response to one transfer. It contains neither cookies nor the URL.
    private struct Response: Codable {
        var identifier: String
        var status: Int
        var fields: [[String]]
    }

    private let folder: URL
    /// The errors of transfers that have failed in this process.
    private let failures = Mutex<[String: any Error]>([:])

    /// Opens or creates the folder at a URL, and deletes incomplete files from previous launches. Other files in the
    /// folder are not deleted.
    ///
    /// - Throws: The system's error, if the folder can't be created.
    package init(_ folder: URL) throws {
        self.folder = folder
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        // If the volume does not support the attributes, the files are stored without them.
        _ = SystemFileSystem().protectDirectory(folder.path)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter(Self.isOwn)
        let complete = Set(names.filter { names.contains($0 + Self.responseSuffix) })
        for name in names where !complete.contains(name) {
            let body = name.hasSuffix(Self.responseSuffix) ? String(name.dropLast(Self.responseSuffix.count)) : nil
            if body.map({ complete.contains($0) }) != true { delete(name) }
        }
    }

    private static let responseSuffix = ".response"

    /// Returns whether this class may have created a file with this name: a key, with or without the suffix of a
    /// response.
    private static func isOwn(_ name: String) -> Bool {
        let key = name.hasSuffix(responseSuffix) ? name.dropLast(responseSuffix.count) : name[...]
        return key.utf8.count == CacheKey("").hash.utf8.count
            && key.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
    }

    /// Moves a received file into the folder.
    ///
    /// - Throws: The system's error, if the file can't be moved. The transfer then counts as failed.
    package func receive(_ file: URL, _ head: HTTPResponse, for identifier: String) throws {
        let name = Self.name(of: identifier)
        do {
            // `Content-Range` identifies the bytes, and `Age` is needed to calculate the freshness.
            var fields = EndToEndFields.storable(head.headerFields)
            for name in [HTTPField.Name.contentRange, .age] { fields[name] = head.headerFields[name] }
            let response = Response(
                identifier: identifier, status: head.status.code, fields: fields.map { [$0.name.rawName, $0.value] })
            delete(name)
            try JSONEncoder().encode(response).write(to: url(name + Self.responseSuffix), options: .atomic)
            try FileManager.default.moveItem(at: file, to: url(name))
        } catch {
            fail(identifier, error)
            throw error
        }
    }

    /// Records that a transfer failed without a response.
    package func fail(_ identifier: String, _ error: any Error) { failures.withLock { $0[identifier] = error } }

    /// The transfers that have finished or failed, in no particular order.
    package var transfers: [BackgroundTransfer] {
        let names = try? FileManager.default.contentsOfDirectory(atPath: folder.path)  // On failure, there are none.
        let responses = (names ?? []).filter { Self.isOwn($0) && $0.hasSuffix(Self.responseSuffix) }
        let received = responses.sorted().compactMap { transfer($0) }
        let failed = failures.withLock { $0 }.filter { failed in !received.contains { $0.identifier == failed.key } }
        return received + failed.map { BackgroundTransfer(identifier: $0.key, state: .failed($0.value)) }
    }

    private func transfer(_ name: String) -> BackgroundTransfer? {
        let body = url(String(name.dropLast(Self.responseSuffix.count)))
        // The file may not have been moved yet, or another program may have changed the response.
        guard FileManager.default.fileExists(atPath: body.path),
            let data = try? Data(contentsOf: url(name)),  // An unreadable response does not count as received.
            let response = try? JSONDecoder().decode(Response.self, from: data),  // As above.
            (100...999).contains(response.status)
        else { return nil }
        let fields = response.fields.compactMap { field in
            field.count == 2 ? HTTPField.Name(field[0]).map { HTTPField(name: $0, value: field[1]) } : nil
        }
        let head = HTTPResponse(status: .init(code: response.status), headerFields: HTTPFields(fields))
        return BackgroundTransfer(identifier: response.identifier, state: .finished(head, file: body))
    }

    /// Deletes the file and the response of a transfer.
    package func remove(_ identifier: String) {
        failures.withLock { $0[identifier] = nil }
        let name = Self.name(of: identifier)
        delete(name)
        delete(name + Self.responseSuffix)
    }

    /// Returns the file name for a transfer. The name does not contain the identifier itself, which may contain any
    /// text from an origin.
    private static func name(of identifier: String) -> String { CacheKey(identifier).hash }

    private func url(_ name: String) -> URL { folder.appendingPathComponent(name) }

    private func delete(_ name: String) {
        try? FileManager.default.removeItem(at: url(name))  // The file is missing, or stays until the next attempt.
    }
}

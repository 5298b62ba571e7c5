import Foundation
import HTTPTypes
import Spool

/// Throws an error unless `condition` is true.
func check(
    _ condition: Bool, _ message: @autoclosure () -> String, file: String = #fileID, line: Int = #line
) throws(ContractFailure) {
    if !condition { throw ContractFailure(message(), file: file, line: line) }
}

/// Throws an error unless both values are equal.
func checkEqual<T: Equatable>(
    _ found: T, _ expected: T, _ what: String = "", file: String = #fileID, line: Int = #line
) throws(ContractFailure) {
    try check(found == expected, "\(what): found \(found), expected \(expected)", file: file, line: line)
}

/// Throws an error unless `body` throws an ``UpstreamError`` with one of `codes`.
func checkThrows(
    _ codes: [UpstreamError.Code], file: String = #fileID, line: Int = #line, _ body: () async throws -> Void
) async throws {
    do {
        try await body()
    } catch let error as UpstreamError {
        return try check(
            codes.contains(error.code), "unexpected failure: \(error.code) \(error)", file: file, line: line)
    } catch {
        throw ContractFailure("\(type(of: error)) instead of UpstreamError: \(error)", file: file, line: line)
    }
    throw ContractFailure("nothing was thrown", file: file, line: line)
}

extension UpstreamContract.Fixture {
    func url(_ path: String) -> URL { url(path, "127.0.0.1") }

    func open(_ path: String, _ fields: HTTPFields = [:]) async throws -> UpstreamResponse {
        try await upstream.open(UpstreamRequest(url: url(path), headerFields: fields))
    }

    /// Requests a path, and reads the response to its end.
    func fetch(_ path: String, _ fields: HTTPFields = [:]) async throws -> (head: HTTPResponse, bytes: [UInt8]) {
        let response = try await open(path, fields)
        return (response.head, try await response.body.collect())
    }
}

extension UpstreamBody {
    func collect() async throws -> [UInt8] {
        var bytes: [UInt8] = []
        for try await chunk in self { chunk.withUnsafeBytes { bytes += $0 } }
        return bytes
    }
}

extension ManualClock {
    /// Runs `body`. Until it returns, the clock is advanced to the deadline of each sleeper, so that waits take no
    /// time.
    func drive<R: Sendable>(_ body: @escaping @Sendable () async throws -> R) async throws -> R {
        let driver = Task {
            while !Task.isCancelled {
                try await waitForSleepers(1)
                if let next = nextDeadline { advance(to: next) }
                await Task.yield()
            }
        }
        defer { driver.cancel() }
        return try await body()
    }
}

/// A violation of a contract by an implementation.
public struct ContractFailure: Error, CustomStringConvertible {
    /// The expected and the actual behavior.
    public var message: String
    /// The file and line of the check.
    package var location: String

    /// Creates a failure at the given line of the contract.
    package init(_ message: String, file: String = #fileID, line: Int = #line) {
        self.message = message
        location = "\(file):\(line)"
    }

    /// The location and the message.
    public var description: String { "\(location): \(message)" }
}

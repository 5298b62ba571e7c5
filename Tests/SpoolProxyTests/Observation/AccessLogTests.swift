import Foundation
import SpoolTesting
import Testing

@testable import SpoolProxy

/// The server's access log.
@Suite(.timeLimit(.minutes(10))) struct AccessLogTests {
    @Test("E189: while the disk is blocked, the number of access log lines that wait in memory is limited")
    func blockedDisk() throws {
        let scratch = try ScratchDirectory()
        let url = URL(fileURLWithPath: scratch.file("log"))
        let log = try AccessLog(url)
        let entry = AccessLog.Entry(
            client: "-", method: "GET", path: "/", status: 200, bytes: 1, duration: .zero, outcome: .complete)
        func lineCount() throws -> Int {
            try Data(contentsOf: url).count { $0 == UInt8(ascii: "\n") }
        }
        log.queue.suspend()
        for _ in 0..<AccessLog.waitingLimit + 10 { log.write(entry) }
        log.queue.resume()
        log.flush()
        #expect(try lineCount() == AccessLog.waitingLimit)
        // There is space again for the next lines.
        log.write(entry)
        log.flush()
        #expect(try lineCount() == AccessLog.waitingLimit + 1)
    }
}

// This file contains the imports of a typical source file in an app. The main purpose of the test is to check that the
// file compiles. If SpoolAVFoundation exported swift-log, `Logger` would be ambiguous here.
import SpoolAVFoundation
import Testing

#if canImport(Darwin)
import OSLog
#else
import StandInOSLog
#endif

@Suite("The system's Logger type")
struct SystemLoggerTests {
    @Test("E137: in a file that imports OSLog and SpoolAVFoundation, Logger is OSLog's type")
    func isUnambiguous() {
        // The type annotation matters, because overload resolution could choose between the initializers of the two
        // types.
        let logger: Logger = Logger(subsystem: "org.example.app", category: "player")
        let module = String(reflecting: type(of: logger)).split(separator: ".").first
        #expect(module != "Logging")
    }
}

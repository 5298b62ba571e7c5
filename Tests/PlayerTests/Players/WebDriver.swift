import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import SpoolTesting

/// A browser window, controlled by the WebDriver protocol.
///
/// https://www.w3.org/TR/webdriver2/
struct WebDriver: Sendable {
    private let session: String

    /// Calls `body` with a new browser that has an empty profile.
    static func run<R: Sendable>(_ driver: Tool, _ body: (WebDriver) async throws -> R) async throws -> R {
        var output = ""
        // The driver takes a free IPv6 port, and exits if the IPv4 port with the same number is in use.
        repeat {
            let run = try driver.start(["--port=0"])
            defer { run.end() }
            output = ""
            for await line in run.lines {
                output += line + "\n"
                guard let range = line.range(of: "started successfully on port "),
                    let port = Int(line[range.upperBound...].filter(\.isNumber))
                else { continue }
                return try await serve(port, body)
            }
        } while output.contains("port not available")
        throw Tool.Failed(description: "the driver of the browser did not start: \(output)")
    }

    private static func serve<R: Sendable>(_ port: Int, _ body: (WebDriver) async throws -> R) async throws -> R {
        let driver = "http://127.0.0.1:\(port)"
        let browser = WebDriver(session: driver + "/session/" + (try await begin(driver)))
        do {
            let result = try await body(browser)
            await browser.end()
            return result
        } catch {
            await browser.end()
            throw error
        }
    }

    private static func begin(_ driver: String) async throws -> String {
        struct Capabilities: Encodable {
            struct All: Encodable { var alwaysMatch = Always() }
            struct Always: Encodable {
                var options = Options()
                var timeouts = ["script": 110_000]
                enum CodingKeys: String, CodingKey {
                    case options = "goog:chromeOptions"
                    case timeouts
                }
            }
            struct Options: Encodable {
                var args = [
                    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--mute-audio",
                    "--autoplay-policy=no-user-gesture-required", "--disable-background-networking",
                ]
            }
            var capabilities = All()
        }
        struct Begun: Decodable {
            struct Value: Decodable { var sessionId: String }
            var value: Value
        }
        let data = try await send("POST", driver + "/session", Capabilities())
        return try JSONDecoder().decode(Begun.self, from: data).value.sessionId
    }

    /// Opens a page.
    func open(_ url: URL) async throws {
        _ = try await Self.send("POST", session + "/url", ["url": url.absoluteString])
    }

    /// Runs a script in the page, and returns the result that the script passes to its last argument.
    func call(_ script: String, _ arguments: [String]) async throws -> String {
        struct Call: Encodable {
            var script: String
            var args: [String]
        }
        struct Result: Decodable { var value: String }
        let data = try await Self.send("POST", session + "/execute/async", Call(script: script, args: arguments))
        return try JSONDecoder().decode(Result.self, from: data).value
    }

    private func end() async {
        // The driver is terminated next, even if this request fails.
        _ = try? await Self.send("DELETE", session, Optional<String>.none)
    }

    private static func send(_ method: String, _ url: String, _ body: (some Encodable)?) async throws -> Data {
        var request = HTTPClientRequest(url: url)
        request.method = .init(rawValue: method)
        if let body {
            request.headers.add(name: "Content-Type", value: "application/json")
            request.body = .bytes(try JSONEncoder().encode(body))
        }
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(120))
        let bytes = try await response.body.collect(upTo: 1 << 20)
        guard response.status == .ok else {
            throw Tool.Failed(description: "the browser refused: \(String(buffer: bytes).prefix(500))")
        }
        return Data(bytes.readableBytesView)
    }
}

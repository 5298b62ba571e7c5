import Foundation
import HTTPRanges
import HTTPTypes
import Spool
import SpoolOrigin
import SpoolTesting
import Synchronization

/// An origin without a socket. It stamps each response, and sends each part of a response only when the test allows it.
final class SharingOrigin: Upstream {
    /// A part of a response that waits until the test releases it.
    struct Held: Sendable {
        let serial: Int
        fileprivate let continuation: CheckedContinuation<Void, Never>
    }

    private struct State {
        var random: SplitMix
        var records: [SharingRecord] = []
        var serials = 0
        var now = 1_700_000_000
        var held: [Held] = []
        var isOpen = false
        /// The number of bytes that the cache has read from each page, by credentials.
        var bytes: [Int: [String: Int]] = [:]
        var requests: [Int: [String: Int]] = [:]
    }

    let pages: [SharedPage]
    private let state: Mutex<State>
    private let whenHeld: @Sendable () -> Void

    /// - Parameter whenHeld: A closure that is called when a part starts to wait.
    init(pages: [SharedPage], seed: UInt64, whenHeld: @escaping @Sendable () -> Void) {
        self.pages = pages
        self.whenHeld = whenHeld
        state = Mutex(State(random: SplitMix(seed)))
    }

    // MARK: Time and waiting

    /// The time of the origin, the cache and the server, in seconds since 1970.
    var now: Int { state.withLock { $0.now } }

    func advance(by seconds: Int) { state.withLock { $0.now += seconds } }

    /// The number of waiting parts.
    var heldCount: Int { state.withLock { $0.held.count } }

    /// Sends one waiting part.
    func release(_ random: inout SplitMix) {
        let index = random.next()
        let held = state.withLock { state -> Held? in
            guard !state.held.isEmpty else { return nil }
            return state.held.remove(at: Int(index % UInt64(state.held.count)))
        }
        held?.continuation.resume()
    }

    /// Sends all waiting parts, and sends later parts immediately.
    func openUp() {
        let held = state.withLock { state in
            state.isOpen = true
            defer { state.held = [] }
            return state.held
        }
        for held in held { held.continuation.resume() }
    }

    fileprivate func hold(_ serial: Int) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOpen = state.withLock { state in
                    if !state.isOpen, !Task.isCancelled {
                        state.held.append(Held(serial: serial, continuation: continuation))
                        return false
                    }
                    return true
                }
                if isOpen { continuation.resume() } else { whenHeld() }
            }
        } onCancel: {
            let held = state.withLock { state in
                let cancelled = state.held.filter { $0.serial == serial }
                state.held.removeAll { $0.serial == serial }
                return cancelled
            }
            for held in held { held.continuation.resume() }
        }
    }

    // MARK: Results

    var records: [SharingRecord] { state.withLock { $0.records } }

    /// Returns the number of requests and of sent bytes for each user's credentials.
    func fetches(of page: Int) -> [(credentials: String, requests: Int, bytes: Int)] {
        state.withLock { state in
            (state.requests[page] ?? [:]).map { ($0.key, $0.value, state.bytes[page]?[$0.key] ?? 0) }
        }
    }

    /// Returns the bytes of a response: its number, followed by bytes derived from the number.
    static func body(_ serial: Int, length: Int) -> [UInt8] {
        let stamp = Array("\(serial);".utf8)
        let start = serial % 251
        return stamp + pattern[start..<start + max(0, length - stamp.count)]
    }

    /// Returns the playlist for a response, with the number of the response in a comment.
    static func playlist(_ serial: Int, length: Int) -> [UInt8] {
        let start = "#EXTM3U\n#\(serial);\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\ns.ts\n"
        let end = "\n#EXT-X-ENDLIST\n"
        let filler = String(repeating: "-", count: max(0, length - start.utf8.count - end.utf8.count - 1))
        return Array("\(start)#\(filler)\(end)".utf8)
    }

    /// Returns the number of the response that a body belongs to; `nil` if the body does not contain a number.
    static func serial(in body: [UInt8]) -> Int? {
        let text = String(decoding: body.prefix { $0 != UInt8(ascii: ";") }, as: UTF8.self)
        return Int(text.hasPrefix("#EXTM3U\n#") ? text.dropFirst("#EXTM3U\n#".count) : text[...])
    }

    private static let pattern = OriginContent.pattern(PatternBytes(length: 1 << 18)).bytes(0..<1 << 18)

    static func credentials(_ fields: [String: String]) -> String {
        (fields["authorization"] ?? "-") + ", " + (fields["cookie"] ?? "-")
    }

    // MARK: Responses

    func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
        let serial = state.withLock { state in
            state.serials += 1
            return state.serials
        }
        await hold(serial)
        try Task.checkCancellation()
        return state.withLock { respond(to: request, serial, &$0) }
    }

    private func respond(
        to request: UpstreamRequest, _ serial: Int, _ state: inout State
    ) -> UpstreamResponse {
        let number = Int(request.url.path.dropFirst().prefix { $0 != "." }) ?? 0
        let page = pages[number]
        var fields: [String: String] = [:]
        for name in ["x-user", "authorization", "cookie", "accept-language"] {
            fields[name] = HTTPField.Name(name).flatMap { request.headerFields[$0] }
        }
        let call =
            HTTPField.Name("X-Call").flatMap { request.headerFields[$0] }.flatMap { Int($0) } ?? -1
        var (status, vary) = (200, state.random.pick(page.vary))
        var directives = state.random.pick(page.directives)
        var confirmed = serial
        if !page.isMedia {
            let tag = request.headerFields[.ifNoneMatch]
            let known = state.records.first {
                $0.hasTag && tag == "\"\($0.serial)\"" && $0.serial == $0.representation
            }
            if let known, known.page == number, isSameRepresentation(known, fields),
                !state.random.chance(4)
            {
                (status, confirmed, vary) = (304, known.serial, known.vary)
            } else if state.random.chance(30) {
                (status, directives, vary) = (503, SharingDirectives(), [])
            }
        }
        // A cache may treat responses with the same modification date as one version (RFC 9110 §8.8.2.2).
        if let age = directives.modifiedAge { directives.modifiedAge = age + serial * 10_000 }
        let record = SharingRecord(
            serial: serial, page: number, call: call, method: request.method.rawValue,
            requestFields: fields,
            status: status,
            directives: directives, vary: vary, time: state.now, representation: confirmed,
            hasTag: page.hasTag && status != 503)
        state.records.append(record)
        var body = page.body(serial)
        var head = self.head(of: record)
        if status == 304 || request.method == .head { body = [] }
        if page.isMedia {
            let credentials = Self.credentials(fields)
            state.requests[number, default: [:]][credentials, default: 0] += 1
            if let range = range(request.headerFields[.range], page.length) {
                head.status = .partialContent
                head.headerFields[.contentRange] =
                    "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(page.length)"
                body = Array(body[range])
            }
            head.headerFields[.contentLength] = "\(body.count)"
            return UpstreamResponse(
                head: head, url: request.url,
                body: UpstreamBody(
                    SharingBody(bytes: body, serial: serial, origin: self, page: number, credentials)))
        }
        if status != 304 { head.headerFields[.contentLength] = "\(page.body(serial).count)" }
        return UpstreamResponse(
            head: head, url: request.url,
            body: UpstreamBody(SharingBody(bytes: body, serial: serial, origin: self)))
    }

    /// Returns whether the origin would send the same bytes for another request from the same user that selects the
    /// same variant.
    private func isSameRepresentation(_ record: SharingRecord, _ fields: [String: String]) -> Bool {
        record.requestFields["x-user"] == fields["x-user"]
            && record.vary.allSatisfy { record.requestFields[$0] == fields[$0] }
    }

    private func head(of record: SharingRecord) -> HTTPResponse {
        let page = pages[record.page]
        let type = page.kind == .playlist ? "application/vnd.apple.mpegurl" : "text/plain"
        var fields: HTTPFields = [.date: Self.date(record.time), .contentType: type]
        fields[.cacheControl] = record.directives.text
        if let age = record.directives.modifiedAge {
            fields[.lastModified] = Self.date(record.time - age)
        }
        if !record.vary.isEmpty { fields[.vary] = record.vary.joined(separator: ", ") }
        if record.hasTag { fields[.eTag] = page.isMedia ? "\"media\"" : "\"\(record.representation)\"" }
        if page.setsCookies { fields[.setCookie] = "from=\(record.serial)" }
        if !page.isMedia, let name = HTTPField.Name("X-Stamp") { fields[name] = "\(record.serial)" }
        return HTTPResponse(status: .init(code: record.status), headerFields: fields)
    }

    private func range(_ text: String?, _ length: Int) -> Range<Int>? {
        guard
            let bounds = text?.dropFirst("bytes=".count).split(
                separator: "-", omittingEmptySubsequences: false),
            bounds.count == 2, let first = Int(bounds[0]), first < length
        else { return nil }
        return first..<min(length, (Int(bounds[1]) ?? length - 1) + 1)
    }

    fileprivate func noteTaken(_ count: Int, of page: Int, _ credentials: String) {
        state.withLock { $0.bytes[page, default: [:]][credentials, default: 0] += count }
    }

    private static func date(_ seconds: Int) -> String {
        HTTPDate(secondsSince1970: Int64(seconds)).text
    }
}

/// The body of a response. Its second half waits until the test releases it.
private struct SharingBody: AsyncSequence, Sendable {
    let bytes: [UInt8]
    let serial: Int
    let origin: SharingOrigin
    /// The page and the credentials under which the bytes are counted.
    let counted: (page: Int, credentials: String)?

    init(bytes: [UInt8], serial: Int, origin: SharingOrigin) {
        (self.bytes, self.serial, self.origin, counted) = (bytes, serial, origin, nil)
    }

    init(bytes: [UInt8], serial: Int, origin: SharingOrigin, page: Int, _ credentials: String) {
        (self.bytes, self.serial, self.origin, counted) = (bytes, serial, origin, (page, credentials))
    }

    func makeAsyncIterator() -> Iterator { Iterator(body: self) }

    struct Iterator: AsyncIteratorProtocol {
        let body: SharingBody
        private var sent = 0
        private var hasWaited = false

        init(body: SharingBody) { self.body = body }

        mutating func next() async throws -> [UInt8]? {
            if sent >= body.bytes.count / 2, !hasWaited, !body.bytes.isEmpty {
                hasWaited = true
                await body.origin.hold(body.serial)
                try Task.checkCancellation()
            }
            guard sent < body.bytes.count else { return nil }
            let end = hasWaited ? body.bytes.count : body.bytes.count / 2
            let piece = Array(body.bytes[sent..<Swift.min(end, sent + 4096)])
            sent += piece.count
            if let counted = body.counted {
                body.origin.noteTaken(piece.count, of: counted.page, counted.credentials)
            }
            return piece
        }
    }
}

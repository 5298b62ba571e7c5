import HTTPTypes
import Testing

@testable import HTTPRanges

/// The properties that every decision must have, tested with random responses that contain plausible and hostile header
/// fields.
@Suite struct PartialResponsePropertyTests {
    private static let lengths = ["0", "1", "99", "100", "400", "500", "1000", "9223372036854775807", "x", "-1", "1,1"]
    private static let pieces: [(name: String, values: [String])] = [
        ("ETag", ["\"a\"", "\"b\"", "W/\"a\"", "a", "\"", ""]),
        ("Last-Modified", ["Sun, 06 Nov 1994 08:49:37 GMT", "Sun Nov  6 08:49:38 1994", "0"]),
        ("Date", ["Sun, 06 Nov 1994 09:49:37 GMT", "Sun, 06 Nov 1994 08:49:40 GMT"]),
        (
            "Content-Range",
            [
                "bytes 0-99/1000", "bytes 500-599/1000", "bytes 500-599/*", "bytes 0-999/1000", "bytes */1000",
                "bytes */400", "bytes 500-499/1000", "bytes 500-9223372036854775806/*", "bytes 300-399/400",
                "bytes 500-9223372036854775807/*", "bytes 0-0/1", "nonsense", "bytes 550-699/9223372036854775807",
            ]
        ),
        ("Content-Length", lengths), ("Content-Type", ["audio/mpeg", "video/mp4", "multipart/byteranges"]),
        ("Content-Encoding", ["identity", "gzip", "br, gzip"]), ("Accept-Ranges", ["bytes", "none"]),
        ("Transfer-Encoding", ["chunked"]), ("Retry-After", ["5", "Sun, 06 Nov 1994 08:49:37 GMT", "?"]),
    ]

    private struct Question {
        var response: HTTPResponse
        var from: Int64?
        var end: Int64?
        var stored: StoredVersion?
        var rule: CombiningRule

        init(using generator: inout SeededGenerator) {
            let statuses = [200, 200, 200, 206, 206, 206, 206, 304, 416, 416, 401, 503, 404, 0, 999]
            var fields = HTTPFields()
            for piece in pieces {
                var chance = 60
                while Int.random(in: 0..<100, using: &generator) < chance, let name = HTTPField.Name(piece.name) {
                    chance = 5  // A second field with the same name is rare.
                    let value = piece.values.randomElement(using: &generator) ?? ""
                    fields.append(HTTPField(name: name, value: value))
                }
                if piece.name == "Transfer-Encoding", Bool.random(using: &generator) { fields[.transferEncoding] = nil }
                if piece.name == "Content-Encoding", Bool.random(using: &generator) { fields[.contentEncoding] = nil }
            }
            response = HTTPResponse(
                status: .init(code: statuses.randomElement(using: &generator) ?? 200), headerFields: fields)
            let offsets: [Int64?] = [nil, 0, 500, 600, 1000, .max, .min, -1]
            from = offsets.randomElement(using: &generator) ?? nil
            end = offsets.randomElement(using: &generator) ?? nil
            rule = Bool.random(using: &generator) ? .strong : .immutable
            if Int.random(in: 0..<4, using: &generator) > 0 {
                var version = ResourceVersion(fields: fields)
                if Bool.random(using: &generator) {
                    version.validator = Validator(entityTag: EntityTag(value: "a"))
                }
                version.length = [nil, 400, 1000, .max, -1].randomElement(using: &generator) ?? nil
                let end = [0, 1, 400, 500, 1000, Int64.max, .min].randomElement(using: &generator) ?? 0
                stored = StoredVersion(version: version, storedEnd: end)
            }
        }

        var decision: PartialResponse.Decision {
            PartialResponse.evaluate(response, requestedStart: from, requestedEnd: end, stored: stored, rule: rule)
        }
    }

    @Test(
        "A1–A12: random responses do not cause a crash or mix versions, and bytes are stored only at the stated offset")
    func invariants() throws {
        var generator = SeededGenerator(seed: 206)
        var kinds: [String: Int] = [:]
        for round in 0..<15_000 {
            let question = Question(using: &generator)
            let decision = question.decision
            let name = "\(decision)".prefix { $0 != "(" }
            kinds[String(name), default: 0] += 1
            guard let placement = decision.accepted ?? decision.renewed else { continue }
            let problem = problem(with: placement, joins: decision.accepted != nil, question)
            try #require(problem == nil, "\(problem ?? "") in round \(round): \(question) \(decision)")
        }
        // The test proves little unless each kind of decision occurs often.
        for kind in ["store", "newGeneration", "restart", "notModified", "unsatisfiable", "refuse"] {
            #expect(kinds[kind, default: 0] > 100, "\(kinds)")
        }
    }

    /// Returns a description of what is wrong with a decision to store bytes; `nil` if the decision is correct. Reads
    /// the header fields without the parsers that the evaluation uses.
    private func problem(with placement: PartialResponse.BodyPlacement, joins: Bool, _ question: Question) -> String? {
        let fields = question.response.headerFields
        let status = question.response.status.code
        if status == 200 {
            if placement.offset != 0 { return "a 200 is not stored from 0" }
        } else if status == 206 {
            let range = fields[values: .contentRange].first?.split(separator: " ").last
            if let first = range?.split(separator: "-").first.flatMap({ Int64($0) }) {
                if first != placement.offset { return "a 206 is stored at an offset other than the stated one" }
            } else {
                // Only the length of the body can prove the position of the part.
                let count = fields[values: .contentLength].first.flatMap { Int64($0) } ?? 0
                guard let from = question.from, placement.offset == max(0, from),
                    placement.offset + count == question.end
                else { return "a 206 without a range is stored" }
            }
        } else {
            return "a body with status \(status) is stored"
        }
        if let end = placement.end, end < placement.offset { return "the stored range ends before its start" }
        if let end = placement.end, let length = placement.version.length, placement.discrepancy == nil, end > length {
            return "the stored range ends past the length"
        }
        guard joins, let stored = question.stored else { return nil }
        let tags = (placement.version.validator.entityTag, stored.version.validator.entityTag)
        if let new = EntityTag(parsing: fields[.eTag] ?? ""), let old = tags.1, !new.weaklyMatches(old) {
            return "another tag joins"
        }
        if let known = stored.version.length, known >= 0, placement.version.length != known {
            return "another length joins"
        }
        if let length = placement.version.length, stored.version.length == nil, length < stored.storedEnd {
            return "a length below the stored bytes joins"
        }
        if placement.version.contentEncoding != stored.version.contentEncoding { return "another encoding joins" }
        let proves = Validator(fields: fields).stronglyMatches(stored.version.validator)
        if question.rule == .strong, !proves { return "an unproven version joins under the strong rule" }
        if !proves, placement.version.validator.isStrong { return "an unproven join is called strong" }
        return nil
    }

    @Test("Parsers of header fields do not crash on mutated text, and parse their own output to the same value")
    func parsers() {
        var generator = SeededGenerator(seed: 14)
        let seeds = [
            "bytes=0-99,-5,7-", "bytes 0-99/1000", "bytes */9223372036854775807", "W/\"abc\"", "\"a|b\"",
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
            "max-age=5, private=\"a, b\"", "\"v\"|Sun, 06 Nov 1994 08:49:37 GMT|7",
            "Accept, Cookie, *",
        ]
        let alphabet = Array("0123456789-=,/*\" \t\\|WbytesGMT".utf8) + [0, 0x7F, 0xC3, 0xA9, 0xFF]
        for _ in 0..<10_000 {
            var bytes = Array((seeds.randomElement(using: &generator) ?? "").utf8)
            for _ in 0..<Int.random(in: 0...4, using: &generator) {
                let byte = alphabet.randomElement(using: &generator) ?? 0
                let index = Int.random(in: 0...bytes.count, using: &generator)
                switch Int.random(in: 0...2, using: &generator) {
                case 0: bytes.insert(byte, at: index)
                case 1 where index < bytes.count: bytes[index] = byte
                case 2 where index < bytes.count: bytes.removeSubrange(index..<min(bytes.count, index + 3))
                default: break
                }
            }
            let text = String(decoding: bytes, as: UTF8.self)
            if let header = RangeHeader(parsing: text) {
                #expect(RangeHeader(parsing: header.text) == header, "\(text)")
                _ = header.resolve(length: 1000)
                _ = header.resolve(length: .max)
            }
            let range = ContentRange(parsing: text)
            if let range { #expect(ContentRange(parsing: range.text) == range, "\(text)") }
            if let tag = EntityTag(parsing: text) { #expect(EntityTag(parsing: tag.text) == tag, "\(text)") }
            if let date = HTTPDate(parsing: text) { #expect(HTTPDate(parsing: date.text) == date, "\(text)") }
            if let validator = Validator(text) { #expect(Validator(validator.description) == validator, "\(text)") }
            _ = RetryAfter(parsing: text)?.delay(now: 0)
            let field = fields(["Cache-Control", "Vary", "Expires", "Age", "ETag"].map { ($0, text) })
            _ = Freshness(fields: field, requestTime: .min, responseTime: .max, shared: true).isFresh(at: .min)
            _ = Vary(fields: field).selection(from: field)
            let fromFields = Validator(fields: field)
            #expect(Validator(fromFields.description) == fromFields, "\(text)")
        }
    }
}

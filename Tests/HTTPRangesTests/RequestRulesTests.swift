import HTTPTypes
import Testing

@testable import HTTPRanges

@Suite("Cache directives and conditions in a request")
struct RequestRulesTests {
    private func directives(_ pairs: (String, String)...) -> RequestDirectives {
        RequestDirectives(fields: fields(pairs))
    }

    @Test("Request directives are case-insensitive; Pragma counts only without Cache-Control (9111 §5.2.1, §5.4)")
    func reading() {
        let read = directives(("cache-control", "Max-Age=5, min-fresh=\"2\", max-stale, ONLY-IF-CACHED, no-store, x=1"))
        var expected = RequestDirectives()
        expected.maxAge = 5
        expected.minFresh = 2
        expected.maxStale = .max
        expected.onlyIfCached = true
        expected.noStore = true
        #expect(read == expected)
        #expect(directives(("Cache-Control", "max-stale=x, max-age=")).maxStale == 0)
        #expect(directives(("Cache-Control", "max-stale=x, max-age=")).maxAge == 0)
        #expect(directives(("Pragma", "x, No-Cache")).noCache)
        #expect(!directives(("Pragma", "no-cache"), ("Cache-Control", "max-age=1")).noCache)
        #expect(RequestDirectives(fields: [:]) == RequestDirectives())
    }

    @Test(
        "A stored response is used if it is fresh, or stale within the limits of the request and the response",
        arguments: [
            ("", 9, 10, true), ("", 10, 10, false), ("no-cache", 0, 10, false), ("max-age=0", 0, 10, false),
            ("max-age=5", 5, 10, true), ("max-age=5", 6, 10, false), ("min-fresh=5", 5, 10, true),
            ("min-fresh=5", 6, 10, false), ("max-stale=5", 15, 10, true), ("max-stale=5", 16, 10, false),
            ("max-stale", .max, 0, true), ("max-stale=5, max-age=12", 13, 10, false),
            ("max-stale=5", .max, .min, false),
        ] as [(String, Int64, Int64, Bool)])
    func accepting(text: String, age: Int64, lifetime: Int64, isAccepted: Bool) {
        let asked = directives(("Cache-Control", text))
        #expect(asked.accepts(age: age, lifetime: lifetime, mayBeStale: true) == isAccepted)
        if lifetime <= age { #expect(!asked.accepts(age: age, lifetime: lifetime, mayBeStale: false)) }
    }

    private static let date = "Sun, 06 Nov 1994 08:49:37 GMT"
    private static let before = "Sunday, 06-Nov-94 08:49:36 GMT"
    private static let after = "Sun Nov  6 08:49:38 1994"

    @Test(
        "Preconditions are evaluated in their order of precedence (9110 §13.2.2)",
        arguments: [
            // The fields of the request, and the outcomes of GET and PUT for a stored version with the tag "a" and a
            // date.
            ([], .proceed, .proceed),
            ([("If-None-Match", "\"a\"")], .notModified, .failed),
            ([("If-None-Match", "W/\"a\"")], .notModified, .failed),
            ([("If-None-Match", "\"x\", \"a\", \"y\"")], .notModified, .failed),
            ([("If-None-Match", "\"x\""), ("If-None-Match", "\"a\"")], .notModified, .failed),
            ([("If-None-Match", "*")], .notModified, .failed),
            ([("If-None-Match", "a")], .notModified, .failed),
            ([("If-None-Match", "w/\"a\"")], .notModified, .failed),
            ([("If-None-Match", "\"x, a\"")], .proceed, .proceed),
            ([("If-None-Match", "\"x\""), ("If-Modified-Since", after)], .proceed, .proceed),
            ([("If-Modified-Since", date)], .notModified, .proceed),
            ([("If-Modified-Since", after)], .notModified, .proceed),
            ([("If-Modified-Since", before)], .proceed, .proceed),
            ([("If-Modified-Since", "yesterday")], .proceed, .proceed),
            ([("If-Match", "\"a\"")], .proceed, .proceed),
            ([("If-Match", "*")], .proceed, .proceed),
            ([("If-Match", "W/\"a\"")], .failed, .failed),
            ([("If-Match", "\"x\""), ("If-None-Match", "\"a\"")], .failed, .failed),
            ([("If-Match", "\"a\""), ("If-Unmodified-Since", before)], .proceed, .proceed),
            ([("If-Unmodified-Since", before)], .failed, .failed),
            ([("If-Unmodified-Since", date)], .proceed, .proceed),
            ([("If-Unmodified-Since", after), ("If-None-Match", "\"a\"")], .notModified, .failed),
        ] as [([(String, String)], Preconditions.Outcome, Preconditions.Outcome)])
    func conditions(pairs: [(String, String)], get: Preconditions.Outcome, put: Preconditions.Outcome) {
        let stored = fields([("ETag", "\"a\""), ("Last-Modified", Self.date)])
        #expect(Preconditions.evaluate(fields(pairs), method: .get, stored: stored) == get)
        #expect(Preconditions.evaluate(fields(pairs), method: .head, stored: stored) == get)
        #expect(Preconditions.evaluate(fields(pairs), method: .put, stored: stored) == put)
    }

    @Test(
        "An entity tag without quotes, or with a malformed `W/`, matches itself and its valid form",
        arguments: [
            "a", "w/\"a\"", "W\\\"a\"", "W\"a\"", "W/\"a\"",
        ])
    func lenient(tag: String) {
        for asked in [tag, "\"a\""] {
            let request = fields([("If-None-Match", asked)])
            #expect(Preconditions.evaluate(request, method: .get, stored: fields([("ETag", tag)])) == .notModified)
        }
    }

    @Test("In preconditions, Date replaces a missing Last-Modified; without a tag or date, only * matches")
    func without() {
        func outcome(_ request: (String, String), _ stored: (String, String)...) -> Preconditions.Outcome {
            Preconditions.evaluate(fields([request]), method: .get, stored: fields(stored))
        }
        #expect(outcome(("If-Modified-Since", Self.date), ("Date", Self.before)) == .notModified)
        #expect(outcome(("If-Modified-Since", Self.date), ("Date", Self.after)) == .proceed)
        #expect(outcome(("If-Modified-Since", Self.date)) == .proceed)
        #expect(outcome(("If-None-Match", "\"a\"")) == .proceed)
        #expect(outcome(("If-None-Match", "*")) == .notModified)
        #expect(outcome(("If-Match", "\"a\"")) == .failed)
    }

    @Test("If-Range matches only if it is a single, identical, strong tag; otherwise all bytes are sent (9110 §13.1.5)")
    func ifRange() {
        let validator = Validator(fields: fields([("ETag", "\"a\"")]))
        func holds(_ pairs: (String, String)...) -> Bool {
            Preconditions.ifRangeHolds(fields(pairs), validator: validator)
        }
        #expect(holds())
        #expect(holds(("If-Range", "\"a\"")))
        #expect(!holds(("If-Range", "W/\"a\"")))
        #expect(!holds(("If-Range", "\"b\"")))
        #expect(!holds(("If-Range", "\"a\""), ("If-Range", "\"a\"")))
    }

    @Test("Vary ignores case, spaces and order when comparing languages, and only spaces when comparing other fields")
    func vary() {
        func selection(_ name: String, _ lines: String...) -> [Vary.Selected]? {
            Vary(fields: fields([("Vary", name)])).selection(from: fields(lines.map { (name, $0) }))
        }
        #expect(selection("Accept-Language", "en, de;q=0.5") == selection("Accept-Language", " DE; q=0.5", "eN"))
        #expect(selection("Accept-Language", "en, de;q=0.5") != selection("Accept-Language", "en, de"))
        #expect(selection("Foo", "1,2") == selection("Foo", " 1", "2 "))
        #expect(selection("Foo", "1, 2") != selection("Foo", "2, 1"))
        #expect(selection("Foo", "a") != selection("Foo", "A"))
    }

    @Test("Heuristic freshness requires a cacheable status or “public” (9111 §4.2.2)")
    func heuristics() {
        func lifetime(_ status: Int, _ pairs: (String, String)...) -> Int64 {
            let modified = [("Last-Modified", "Thu, 01 Jan 1970 00:00:00 GMT")]
            return Freshness(
                fields: fields(modified + pairs), requestTime: 1000, responseTime: 1000, shared: true, status: status
            ).lifetime
        }
        for status in [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501] { #expect(lifetime(status) == 100) }
        for status in [201, 302, 403, 503, 599] { #expect(lifetime(status) == 0) }
        #expect(lifetime(599, ("Cache-Control", "public")) == 100)
    }

    @Test(
        "The age of a response is the first value of its first Age field, without parameters (9111 §5.1)",
        arguments: [
            ("7, 0", 7), ("0, 7", 0), ("7;foo=1", 7), ("7.0", 0), ("-7", 0), ("abc", 0), (",7", 7),
        ] as [(String, Int64)])
    func age(text: String, expected: Int64) {
        let freshness = Freshness(
            fields: fields([("Age", text), ("Age", "3")]), requestTime: 1000, responseTime: 1000, shared: true)
        #expect(freshness.initialAge == expected)
    }
}

import ByteRanges
import HTTPRanges
import HTTPTypes
import Testing

private func control(_ values: String...) -> CacheControl {
    CacheControl(fields: fields(values.map { ("cache-CONTROL", $0) }))
}

@Suite struct CacheControlTests {
    @Test("A20: cache directives are parsed in any case, from one or several fields, quoted or not (9111 §5.2)")
    func directives() {
        let read = control("No-Store, max-age=60", "private=\"a, no-cache\", S-MAXAGE=\"7\" , immutable,,x=y")
        var expected = CacheControl()
        expected.noStore = true
        expected.namedFields = ["a", "no-cache"]
        expected.immutable = true
        expected.maxAge = 60
        expected.sharedMaxAge = 7
        #expect(read == expected)
        var others = CacheControl()
        others.isPublic = true
        others.namedFields = ["set-cookie"]
        others.mustRevalidate = true
        others.proxyRevalidate = true
        others.noTransform = true
        others.staleWhileRevalidate = 1
        others.staleIfError = 2
        #expect(
            control(
                "public, no-cache=\"Set-Cookie\", must-revalidate, proxy-revalidate, no-transform",
                "stale-while-revalidate=1, stale-if-error=2") == others)
        #expect(CacheControl(fields: [:]) == CacheControl())
    }

    @Test(
        "E472: private and no-cache with a malformed list apply to the whole response",
        arguments: ["=\"Set-Cookie", "=\"", "=Set-Cookie\"", "=\"a b\"", "=\"a, @\""])
    func malformedList(_ list: String) {
        #expect(control("max-age=60, private\(list)").isPrivate)
        #expect(control("max-age=60, no-cache\(list)").noCache)
    }

    @Test(
        "In a directive, a malformed number counts as 0 and a huge number as the limit; later duplicates are ignored",
        arguments: [
            ("max-age=x", 0), ("max-age", 0), ("max-age=-1", 0), ("max-age=\"\"", 0), ("max-age=\"", 0),
            ("max-age=99999999999999999999", NumberLimits.seconds), ("max-age=9, max-age=5, max-age=17", 9),
            ("max-age=x, max-age=9", 0),
        ] as [(String, Int64)])
    func numbers(text: String, expected: Int64) {
        #expect(control(text).maxAge == expected)
    }

    @Test(
        "A space next to the equals sign makes a directive invalid (9111 §5.2)",
        arguments: ["max-age =5", "max-age= 5"])
    func blanks(text: String) {
        #expect(control(text).maxAge ?? 0 == 0)
    }

    @Test(
        "must-understand overrides no-store if the status is understood, and forbids storing otherwise (9111 §5.2.2.3)")
    func mustUnderstand() {
        func keeps(_ text: String, _ status: Int) -> Bool {
            control(text).allowsStoring(shared: true, hasAuthorization: false, status: status)
        }
        #expect(keeps("no-store, must-understand", 200))
        #expect(keeps("must-understand", 404))
        #expect(!keeps("no-store, must-understand", 599))
        #expect(!keeps("must-understand", 599))
        #expect(keeps("max-age=1", 599))
    }

    @Test(
        "In a shared cache, a valid CDN-Cache-Control replaces Cache-Control and Expires (9213 §2)",
        arguments: [
            // The field, the seconds of freshness, and whether storing is allowed. If the seconds are `nil`, the field
            // is ignored.
            ("max-age=100", 100, true), ("MaX-aGe=100", 100, true), ("foobar, max-age=100", 100, true),
            ("max-age=1, max-age=100", 100, true), ("max-age=100;x=1", 100, true), ("no-store", 0, false),
            ("private", 0, false), ("foo", 0, true), ("max-age=\"100\"", 0, true), ("private=?0, max-age=7", 7, true),
            ("x=\"a, b\", max-age=7", 7, true), ("", nil, true), ("max-age=100, &&&&&", nil, true),
            ("max-age =100", nil, true), ("max-age= 100", nil, true), ("max-age=", nil, true), ("a,,b", nil, true),
        ] as [(String, Int64?, Bool)])
    func targeted(text: String, lifetime: Int64?, isKept: Bool) {
        let fields = fields([
            ("CDN-Cache-Control", text), ("Cache-Control", "max-age=5"), ("Expires", "Thu, 01 Jan 1970 00:02:00 GMT"),
            ("Date", "Thu, 01 Jan 1970 00:01:40 GMT"),
        ])
        let freshness = Freshness(fields: fields, requestTime: 100, responseTime: 100, shared: true)
        #expect(freshness.lifetime == lifetime ?? 5)
        let control = CacheControl.governing(fields).control
        #expect(control.allowsStoring(shared: true, hasAuthorization: false) == isKept)
        #expect(Freshness(fields: fields, requestTime: 100, responseTime: 100, shared: false).lifetime == 5)
    }

    @Test(
        "A20: private and shared caches store only responses that RFC 9111 §3 and §3.5 allow",
        arguments: [
            ("no-store", [false, false, false]), ("private", [true, false, false]), ("", [true, true, false]),
            ("public", [true, true, true]), ("s-maxage=5", [true, true, true]), ("max-age=5", [true, true, false]),
            ("must-revalidate", [true, true, true]), ("public, private", [true, false, false]),
            ("public, no-store", [false, false, false]),
        ])
    func storing(text: String, expected: [Bool]) {
        let control = control(text)
        #expect(
            [
                control.allowsStoring(shared: false, hasAuthorization: true),
                control.allowsStoring(shared: true, hasAuthorization: false),
                control.allowsStoring(shared: true, hasAuthorization: true),
            ] == expected)
    }
}

@Suite struct FreshnessTests {
    /// 1994-11-06 08:49:37 GMT.
    private let made: Int64 = 784_111_777
    private let date = ("Date", "Sun, 06 Nov 1994 08:49:37 GMT")

    private func freshness(_ pairs: (String, String)..., delay: Int64 = 0, shared: Bool = false) -> Freshness {
        Freshness(fields: fields(pairs), requestTime: made, responseTime: made + delay, shared: shared)
    }

    @Test("max-age takes precedence over Expires, and s-maxage over both in a shared cache (9111 §4.2.1)")
    func lifetimes() {
        let expires = ("Expires", "Sun, 06 Nov 1994 08:51:17 GMT")
        #expect(freshness(date, expires).lifetime == 100)
        #expect(freshness(date, expires, ("Cache-Control", "max-age=60, s-maxage=30")).lifetime == 60)
        #expect(freshness(date, expires, ("Cache-Control", "max-age=60, s-maxage=30"), shared: true).lifetime == 30)
        #expect(freshness(expires).lifetime == 100)
        #expect(freshness(date).lifetime == 0)
    }

    @Test("A response with a malformed, past or repeated Expires is stale (9111 §5.3)")
    func badExpires() {
        let modified = ("Last-Modified", "Sun, 06 Nov 1994 08:32:57 GMT")
        #expect(freshness(date, modified, ("Expires", "0")).lifetime == 0)
        #expect(freshness(date, modified, ("Expires", "Sun, 06 Nov 1994 08:49:30 GMT")).lifetime == 0)
        let later = ("Expires", "Sun, 06 Nov 1994 09:49:37 GMT")
        #expect(freshness(date, later, later).lifetime == 0)
    }

    @Test("Without an explicit lifetime, a response is fresh for a tenth of the time since Last-Modified (9111 §4.2.2)")
    func heuristic() {
        let read = freshness(date, ("Last-Modified", "Sun, 06 Nov 1994 08:32:57 GMT"))
        #expect(read.lifetime == 100)
        #expect(read.isHeuristic)
        #expect(!freshness(date, ("Cache-Control", "max-age=1")).isHeuristic)
        #expect(freshness(date, ("Last-Modified", "Sun, 06 Nov 1994 09:32:57 GMT")).lifetime == 0)
    }

    @Test("The age of a response includes its Age field, its delay and the time since it was received (9111 §4.2.3)")
    func ages() {
        let maxAge = ("Cache-Control", "max-age=60")
        #expect(freshness(date, maxAge).age(at: made) == 0)
        #expect(freshness(date, maxAge, ("Age", "10"), delay: 5).age(at: made + 5) == 15)
        #expect(freshness(date, maxAge, delay: 20).age(at: made + 30) == 30)
        #expect(freshness(maxAge, ("Age", "x")).age(at: made - 100) == 0)
        let read = freshness(date, maxAge, ("Age", "10"))
        #expect(read.isFresh(at: made + 49))
        #expect(!read.isFresh(at: made + 50))
    }

    @Test("Extreme times and numbers in a response do not cause an overflow in its age")
    func extremes() {
        let read = Freshness(
            fields: fields([("Age", "9223372036854775807"), ("Cache-Control", "max-age=99999999999999999999")]),
            requestTime: .min, responseTime: .max, shared: true)
        #expect(read.age(at: .min) == NumberLimits.seconds)
        #expect(read.age(at: .max) == NumberLimits.seconds)
        #expect(!read.isFresh(at: .max))
    }
}

@Suite struct VaryTests {
    @Test("A20: requests that differ in a field that Vary names don't share a response (9111 §4.1)")
    func selection() throws {
        let vary = Vary(fields: fields([("VARY", "Accept-Language, cookie"), ("Vary", "accept-language")]))
        #expect(vary.names == ["accept-language", "cookie"])
        let german = try #require(vary.selection(from: fields([("Accept-Language", "de"), ("Host", "a")])))
        #expect(
            german == [
                Vary.Selected(name: "accept-language", value: "de"), Vary.Selected(name: "cookie", value: nil),
            ])
        #expect(vary.selection(from: fields([("accept-language", " de "), ("Host", "b")])) == german)
        #expect(vary.selection(from: fields([("Accept-Language", "en")])) != german)
        #expect(vary.selection(from: fields([("Accept-Language", "de"), ("Cookie", "")])) != german)
        let split = vary.selection(from: fields([("Accept-Language", "de"), ("Accept-Language", "en")]))
        #expect(split == vary.selection(from: fields([("Accept-Language", "de ,en")])))
    }

    @Test(
        "A20: a response whose Vary contains * or a malformed name does not match any other request",
        arguments: ["*", "Accept, *", "a b", "Accept, (x)"])
    func any(text: String) {
        let vary = Vary(fields: fields([("Vary", text)]))
        #expect(vary.isAny)
        #expect(vary.selection(from: [:]) == nil)
    }

    @Test("A response with a missing or empty Vary does not depend on request fields", arguments: ["", ",", " "])
    func none(text: String) {
        #expect(Vary(fields: fields([("Vary", text)])).selection(from: fields([("Cookie", "x")])) == [])
        #expect(Vary(fields: [:]).selection(from: [:]) == [])
    }
}

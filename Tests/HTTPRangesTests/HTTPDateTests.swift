import ByteRanges
import HTTPRanges
import Testing

@Suite struct HTTPDateTests {
    @Test(
        "The three date formats are parsed to the same time (9110 §5.6.7)",
        arguments: [
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
            " Sun, 06 Nov 1994 08:49:37 GMT\t", "sun, 06 nov 1994 08:49:37 gmt",
        ])
    func threeForms(text: String) {
        #expect(HTTPDate(parsing: text)?.secondsSince1970 == 784_111_777)
    }

    @Test(
        "Known dates are converted to the expected number of seconds since 1970, and back",
        arguments: [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Wed, 31 Dec 1969 23:59:59 GMT", -1),
            ("Tue, 29 Feb 2000 12:00:00 GMT", 951_825_600), ("Mon, 01 Mar 2100 00:00:00 GMT", 4_107_542_400),
            ("Tue, 19 Jan 2038 03:14:08 GMT", 2_147_483_648), ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
            ("Sat, 01 Jan 0000 00:00:00 GMT", -62_167_219_200),
        ] as [(String, Int64)])
    func knownMoments(text: String, seconds: Int64) {
        #expect(HTTPDate(parsing: text)?.secondsSince1970 == seconds)
        #expect(HTTPDate(secondsSince1970: seconds).text == text)
    }

    @Test(
        "Malformed dates are parsed as nil",
        arguments: [
            "", "0", "-1", "now", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 31 Nov 1994 08:49:37 GMT", "Wed, 29 Feb 2100 00:00:00 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:00 GMT",
            "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 06 Nov -994 08:49:37 GMT", "Xyz, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Abc 1994 08:49:37 GMT", "Sunday, 06-Nov-1994 08:49:37 GMT", "Sun Nov 6 08:49:37 1994",
            "1994-11-06T08:49:37Z", "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
            "Süd, 06 Nov 1994 08:49:37 GM", "                             ",
        ])
    func noDate(text: String) {
        #expect(HTTPDate(parsing: text) == nil)
    }

    @Test("A leap second is parsed as the second after it")
    func leapSecond() throws {
        let leap = try #require(HTTPDate(parsing: "Sat, 31 Dec 2016 23:59:60 GMT"))
        #expect(leap == HTTPDate(parsing: "Sun, 01 Jan 2017 00:00:00 GMT"))
    }

    @Test(
        "A two-digit year more than 50 years ahead is assigned to the previous century",
        arguments: [(2025, 75, 2075), (2025, 76, 1976), (2080, 10, 2110), (2080, 31, 2031), (1999, 0, 2000)])
    func centuries(now: Int, digits: Int, year: Int) throws {
        let twoDigits = digits < 10 ? "0\(digits)" : "\(digits)"
        let date = try #require(HTTPDate(parsing: "Friday, 15-Jun-\(twoDigits) 00:00:00 GMT", currentYear: now))
        #expect(date.text.contains(" \(year) "), "\(date.text)")
    }

    @Test("Every date from 1899 through 2100 can be written and parsed back to the same value")
    func everyDay() {
        let wrong = (Int64(-25_932)...47_846).first { day in
            let seconds = day * 86_400 + 45_296
            return HTTPDate(parsing: HTTPDate(secondsSince1970: seconds).text)?.secondsSince1970 != seconds
        }
        #expect(wrong == nil)
    }

    @Test("The minimum and maximum of Int64 are written as valid dates", arguments: [Int64.min, .max])
    func ends(seconds: Int64) {
        let text = HTTPDate(secondsSince1970: seconds).text
        #expect(HTTPDate(parsing: text) != nil, "\(text)")
    }
}

@Suite struct RetryAfterTests {
    @Test(
        "Retry-After accepts seconds and dates, and rejects other text (9110 §10.2.3)",
        arguments: [
            ("120", .seconds(120)), (" 0 ", .seconds(0)), ("99999999999999999999", .seconds(NumberLimits.seconds)),
            ("Thu, 01 Jan 1970 00:01:40 GMT", .date(HTTPDate(secondsSince1970: 100))),
            ("-1", nil), ("1.5", nil), ("soon", nil), ("", nil),
        ] as [(String, RetryAfter?)])
    func parsing(text: String, expected: RetryAfter?) {
        #expect(RetryAfter(parsing: text) == expected)
    }

    @Test("The delay from a Retry-After field is never negative and does not overflow")
    func delays() {
        let date = RetryAfter.date(HTTPDate(secondsSince1970: 100))
        #expect(date.delay(now: 40) == .seconds(60))
        #expect(date.delay(now: 140) == .zero)
        #expect(date.delay(now: .min) == .seconds(Int64.max))
        #expect(RetryAfter.date(HTTPDate(secondsSince1970: .min)).delay(now: .max) == .zero)
        #expect(RetryAfter.seconds(7).delay(now: 40) == .seconds(7))
        #expect(RetryAfter.seconds(-7).delay(now: 40) == .zero)
        #expect(RetryAfter.seconds(.max).delay(now: 0) == .seconds(Int64.max))
    }
}

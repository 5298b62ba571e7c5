import Foundation
import HTTPTypes
import Testing

@testable import HTTPRanges

private let modified = "Sun, 06 Nov 1994 08:49:37 GMT"
private let modifiedSeconds: Int64 = 784_111_777

private func dated(_ tag: String? = nil, modified text: String? = modified, after seconds: Int64 = 3600) -> Validator {
    Validator(
        entityTag: tag.flatMap { EntityTag(parsing: $0) }, lastModified: text,
        date: HTTPDate(secondsSince1970: modifiedSeconds + seconds))
}

@Suite struct EntityTagTests {
    @Test(
        "Entity tags are parsed and written (9110 §8.8.3)",
        arguments: [
            ("\"a\"", "a", false), ("W/\"a\"", "a", true), ("\"\"", "", false), (" \"x|y,z\" ", "x|y,z", false),
            ("\"é\"", "é", false),
        ])
    func wellFormed(text: String, value: String, isWeak: Bool) throws {
        let tag = try #require(EntityTag(parsing: text))
        #expect(tag.value == value)
        #expect(tag.isWeak == isWeak)
        #expect(EntityTag(parsing: tag.text) == tag)
    }

    @Test(
        "Malformed entity tags are parsed as nil",
        arguments: ["", "a", "\"", "\"a", "a\"", "w/\"a\"", "W/a", "W/", "\"a\"b\"", "\"a b\"", "\"a\u{7F}\"", "*"])
    func malformed(text: String) {
        #expect(EntityTag(parsing: text) == nil)
    }

    @Test(
        "Strong and weak comparisons of entity tags follow the table in 9110 §8.8.3.2",
        arguments: [
            ("W/\"1\"", "W/\"1\"", false, true), ("W/\"1\"", "W/\"2\"", false, false),
            ("W/\"1\"", "\"1\"", false, true), ("\"1\"", "\"1\"", true, true),
        ])
    func comparison(one: String, other: String, strong: Bool, weak: Bool) throws {
        let (one, other) = (try #require(EntityTag(parsing: one)), try #require(EntityTag(parsing: other)))
        #expect(one.stronglyMatches(other) == strong)
        #expect(other.stronglyMatches(one) == strong)
        #expect(one.weaklyMatches(other) == weak)
        #expect(other.weaklyMatches(one) == weak)
    }

    @Test("Entity tags that look alike but consist of different bytes do not match")
    func unicodeEquivalence() throws {
        let composed = try #require(EntityTag(value: "\u{E9}"))
        let decomposed = try #require(EntityTag(value: "e\u{301}"))
        #expect(composed != decomposed)
        #expect(!composed.stronglyMatches(decomposed))
    }

    @Test("An entity tag that is not UTF-8 is not strong, and does not match other tags")
    func notUTF8() throws {
        let name = try #require(HTTPField.Name("ETag"))
        var one = HTTPFields()
        one.append(HTTPField(name: name, value: [0x22, 0x61, 0xE8, 0x22]))
        var other = HTTPFields()
        other.append(HTTPField(name: name, value: [0x22, 0x61, 0xE9, 0x22]))
        #expect(!Validator(fields: one).isStrong)
        #expect(!Validator(fields: one).stronglyMatches(Validator(fields: other)))
    }

    @Test("An unquoted tag, or two different tags, can show that versions differ, but not that they are the same")
    func doubtful() {
        let bare = Validator(fields: fields([("etag", "abc")]))
        #expect(bare.entityTag?.text == "W/\"abc\"")
        #expect(bare.contradicts(Validator(fields: fields([("etag", "abd")]))))
        #expect(!bare.contradicts(bare))
        #expect(!Validator(fields: fields([("ETag", "\"a\""), ("ETag", "\"b\"")])).isStrong)
        #expect(Validator(fields: fields([("ETag", "\"a\""), ("ETag", "\"a\"")])).isStrong)
        #expect(Validator(fields: fields([("ETag", "")])).entityTag == nil)
    }
}

@Suite struct ValidatorTests {
    @Test(
        "A3: a strong tag or, without a tag, a Last-Modified 60 s before Date makes a validator strong (9110 §8.8.2.2)",
        arguments: [
            (dated("\"a\""), true), (dated("W/\"a\""), false), (dated(), true), (dated(after: 60), true),
            (dated(after: 59), false), (dated(after: -60), false), (dated(modified: nil), false),
            (Validator(lastModified: modified), false), (Validator(), false),
            (Validator(lastModified: modified, date: HTTPDate(secondsSince1970: .max)), true),
            (Validator(lastModified: modified, date: HTTPDate(secondsSince1970: .min)), false),
        ])
    func strength(validator: Validator, isStrong: Bool) {
        #expect(validator.isStrong == isStrong)
        #expect((validator.ifRangeText != nil) == isStrong)
    }

    @Test("If-Range contains the strong tag or, without a tag, the date in the origin's format (9110 §13.1.5)")
    func ifRangeText() {
        #expect(dated("\"a\"").ifRangeText == "\"a\"")
        let odd = "Sunday, 06-Nov-94 08:49:37 GMT"
        #expect(dated(modified: odd).ifRangeText == odd)
    }

    @Test("The field names of a validator are case-insensitive, and an invalid or ambiguous date is ignored")
    func reading() {
        let validator = Validator(
            fields: fields([("eTaG", "\"a\""), ("LAST-MODIFIED", modified), ("date", "Sun, 06 Nov 1994 09:49:37 GMT")]))
        #expect(validator == dated("\"a\""))
        let doubtful = Validator(
            fields: fields([("Last-Modified", "0"), ("Date", modified), ("Date", "Sun, 06 Nov 1994 09:49:37 GMT")]))
        #expect(doubtful == Validator())
    }

    @Test("Validators match strongly by their tags, and by their dates only if a tag is missing and no tag is weak")
    func strongMatches() {
        let other = "Mon, 07 Nov 1994 08:49:37 GMT"
        #expect(dated("\"a\"").stronglyMatches(dated("\"a\"", modified: other)))
        #expect(!dated("\"a\"").stronglyMatches(dated("\"b\"")))
        #expect(!dated("W/\"a\"").stronglyMatches(dated("W/\"a\"")))
        #expect(dated().stronglyMatches(dated(modified: "Sunday, 06-Nov-94 08:49:37 GMT", after: 99)))
        #expect(!dated().stronglyMatches(dated(after: 5)))
        #expect(!dated().stronglyMatches(dated(modified: other, after: 200_000)))
        #expect(dated("\"a\"").stronglyMatches(dated()))
        #expect(!dated("W/\"a\"").stronglyMatches(dated()))
        #expect(!Validator().stronglyMatches(Validator()))
    }

    @Test("Validators that contradict each other never match strongly, and match weakly only if both contain tags")
    func consistency() {
        let tags = [nil, "\"a\"", "W/\"a\"", "\"b\"", "W/\"b\""]
        let dates = [nil, modified, "Mon, 07 Nov 1994 08:49:37 GMT"]
        let all = tags.flatMap { tag in
            dates.flatMap { date in [5, 3600, 200_000].map { dated(tag, modified: date, after: $0) } }
        }
        for one in all {
            for other in all {
                #expect(!(one.contradicts(other) && one.stronglyMatches(other)), "\(one) \(other)")
                #expect(one.contradicts(other) == other.contradicts(one), "\(one) \(other)")
                #expect(one.stronglyMatches(other) == other.stronglyMatches(one), "\(one) \(other)")
                #expect(one.weaklyMatches(other) == other.weaklyMatches(one), "\(one) \(other)")
                #expect(!one.stronglyMatches(other) || one.weaklyMatches(other), "\(one) \(other)")
                #expect(!one.weakened.stronglyMatches(other) && !one.weakened.isStrong, "\(one) \(other)")
                if one.entityTag != nil, other.entityTag != nil { continue }
                #expect(!(one.contradicts(other) && one.weaklyMatches(other)), "\(one) \(other)")
            }
        }
    }

    @Test(
        "A16: an old, weak or malformed If-Range does not match, so the whole resource is sent (9110 §13.1.5)",
        arguments: [
            ("\"a\"", dated("\"a\""), true), ("\"b\"", dated("\"a\""), false), ("W/\"a\"", dated("\"a\""), false),
            ("\"a\"", dated("W/\"a\""), false), (modified, dated(), true), (modified, dated(after: 5), false),
            ("Sun, 06 Nov 1994 08:49:38 GMT", dated(), false), ("Sun, 06 Nov 1994 08:49:36 GMT", dated(), false),
            (modified, dated("\"a\""), true), ("\"a\"", dated(), false), ("a", dated("\"a\""), false),
            ("", dated("\"a\""), false), ("\"a\", \"b\"", dated("\"a\""), false),
        ])
    func ifRange(text: String, validator: Validator, expected: Bool) {
        #expect(validator.satisfies(ifRange: text) == expected)
    }

    @Test("A validator can be restored from its text form in the catalog, and from JSON")
    func roundTrip() throws {
        let odd = dated("W/\"x|y|z\"", modified: "Sunday, 06-Nov-94 08:49:37 GMT")
        for validator in [Validator(), dated("\"a\""), dated(), dated("\"\"", modified: nil), odd] {
            #expect(Validator(validator.description) == validator)
            let data = try JSONEncoder().encode([validator])
            #expect(try JSONDecoder().decode([Validator].self, from: data) == [validator])
        }
        #expect(dated("\"v1\"").description == "\"v1\"|Sun, 06 Nov 1994 08:49:37 GMT|784115377")
        var settable = Validator()
        settable.lastModified = "not a | date"
        #expect(Validator(settable.description) == Validator())
    }

    @Test(
        "Malformed text in the catalog is not parsed as a validator",
        arguments: ["", "|", "a||", "|x|", "||x", "||1.5", "\"a\"|", "||1|2"])
    func noValidator(text: String) {
        #expect(Validator(text) == nil)
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode([Validator].self, from: JSONEncoder().encode([text]))
        }
    }

    @Test("A resource version can be encoded as JSON and decoded again")
    func versionRoundTrip() throws {
        let version = ResourceVersion(
            validator: dated("\"a\""), length: 7, contentType: "a/b", contentEncoding: "gzip", acceptsRanges: false)
        for version in [version, ResourceVersion()] {
            let data = try JSONEncoder().encode(version)
            #expect(try JSONDecoder().decode(ResourceVersion.self, from: data) == version)
        }
    }
}

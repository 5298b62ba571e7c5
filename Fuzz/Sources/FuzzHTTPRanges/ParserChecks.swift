import HTTPRanges
import HTTPTypes

/// The checks for every parser: it does not crash, and parsing the text that represents its result gives the same
/// result.
enum ParserChecks {
    static func run(_ text: String) {
        if let header = RangeHeader(parsing: text) {
            precondition(RangeHeader(parsing: header.text) == header)
            for length: Int64 in [0, 1, 1000, 1 << 53, (1 << 53) + 1, .max] {
                check(header.resolve(length: length), length: length)
            }
        }
        if let header = ContentRange(parsing: text) {
            precondition(ContentRange(parsing: header.text) == header)
            for number in [header.range?.upperBound, header.length].compactMap({ $0 }) {
                precondition(number <= (1 << 53) + 1)
            }
            if let range = header.range { precondition(!range.isEmpty && range.upperBound <= header.length ?? .max) }
        }
        if let tag = EntityTag(parsing: text) { precondition(EntityTag(parsing: tag.text) == tag) }
        if let date = HTTPDate(parsing: text) { precondition(HTTPDate(parsing: date.text) == date) }
        if let validator = Validator(text) { precondition(Validator(validator.description) == validator) }
        if let retry = RetryAfter(parsing: text) { precondition(retry.delay(now: 784_111_777) >= .zero) }

        var fields = HTTPFields()
        for name in [HTTPField.Name.cacheControl, .vary, .expires, .age, .eTag, .lastModified, .date] {
            fields.append(HTTPField(name: name, value: text))
        }
        let freshness = Freshness(fields: fields, requestTime: .min, responseTime: .max, shared: true)
        precondition(freshness.lifetime >= 0 && freshness.age(at: .min) >= 0)
        _ = Vary(fields: fields).selection(from: fields)
        let validator = Validator(fields: fields)
        precondition(Validator(validator.description) == validator)
        precondition(!(validator.isStrong && validator.contradicts(validator)))
    }

    private static func check(_ resolution: RangeHeader.Resolution, length: Int64) {
        guard case .partial(let ranges) = resolution else { return }
        precondition(!ranges.isEmpty && ranges.count <= 16)
        precondition(ranges.allSatisfy { !$0.isEmpty && $0.lowerBound >= 0 && $0.upperBound <= length })
    }
}

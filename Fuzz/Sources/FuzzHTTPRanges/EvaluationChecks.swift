import HTTPRanges
import HTTPTypes

/// The checks for every decision: it causes no crash, and bytes are stored only at the stated offset and never in a
/// different version.
///
/// The input is the header section of a response as lines. The first line contains the three digits of the status and
/// two bytes of flags. The other lines are fields as they are sent.
enum EvaluationChecks {
    static func run(_ bytes: some Collection<UInt8>) {
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        let first = Array(lines.first ?? bytes.prefix(0))
        guard first.count >= 5 else { return }
        let digits = first[0..<3].map { (Int($0) + 2) % 10 }  // The text "206" gives 206.
        let code = digits[0] * 100 + digits[1] * 10 + digits[2]
        var fields = HTTPFields()
        for line in lines.dropFirst().prefix(32) {
            let parts = line.split(separator: UInt8(ascii: ":"), maxSplits: 1)
            let name = parts.first.flatMap { HTTPField.Name(String(decoding: $0, as: UTF8.self)) }
            if parts.count == 2, let name { fields.append(HTTPField(name: name, value: Array(parts[1]))) }
        }
        let response = HTTPResponse(status: .init(code: code), headerFields: fields)
        let offsets: [Int64?] = [nil, 0, 500, 600, 1000, .max, .min, -1]
        var stored: StoredVersion?
        if first[4] & 1 != 0 {
            var version = ResourceVersion(fields: fields, length: offsets[Int(first[4] >> 1 & 7)])
            if first[4] & 16 != 0 { version.validator = Validator(entityTag: EntityTag(value: "a")) }
            stored = StoredVersion(version: version, storedEnd: offsets[Int(first[4] >> 5 & 7)] ?? 0)
        }
        let rule = first[3] & 64 != 0 ? CombiningRule.strong : .immutable
        let (start, end) = (offsets[Int(first[3] & 7)], offsets[Int(first[3] >> 3 & 7)])
        let decision = PartialResponse.evaluate(
            response, requestedStart: start, requestedEnd: end, stored: stored, rule: rule)
        switch decision {
        case .store(let placement):
            check(placement, response, start, end)
            let proves = stored.map { Validator(fields: fields).stronglyMatches($0.version.validator) } ?? true
            precondition(proves || (rule == .immutable && !placement.version.validator.isStrong))
            precondition(stored.map { $0.version.contentEncoding == placement.version.contentEncoding } ?? true)
        case .newGeneration(let placement):
            check(placement, response, start, end)
            precondition(stored != nil)
        case .restart, .notModified: precondition(stored != nil)
        case .unsatisfiable: precondition(code == 416)
        case .refuse(let refusal): precondition(refusal.status == code)
        }
    }

    private static func check(
        _ placement: PartialResponse.BodyPlacement, _ response: HTTPResponse, _ start: Int64?, _ end: Int64?
    ) {
        // A transforming proxy sends 203 instead of 200 (RFC 9110 §15.3.4).
        if [200, 203].contains(response.status.code) {
            precondition(placement.offset == 0)
        } else {
            let claim = response.headerFields[.contentRange].flatMap { ContentRange(parsing: $0) }
            precondition(response.status.code == 206)
            if let claim {
                precondition(claim.range?.lowerBound == placement.offset)
            } else {
                // Without a valid Content-Range, the length of the body determines its position.
                precondition(placement.offset == start && placement.end ?? .max <= end ?? .max)
            }
        }
        precondition(placement.end.map { $0 >= placement.offset } ?? true)
    }
}

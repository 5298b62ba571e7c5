import HTTPTypes

@testable import HTTPRanges

/// Header fields from names and values as text, in order, names in any case.
func fields(_ pairs: [(String, String)]) -> HTTPFields {
    var fields = HTTPFields()
    for (name, value) in pairs {
        if let name = HTTPField.Name(name) { fields.append(HTTPField(name: name, value: value)) }
    }
    return fields
}

/// A response from a status and header fields.
func makeResponse(_ status: Int, _ pairs: (String, String)...) -> HTTPResponse {
    HTTPResponse(status: .init(code: status), headerFields: fields(pairs))
}

/// A stored version: an mp3 of 1000 bytes with the strong tag "a", 500 of them held, unless said otherwise.
func stored(
    tag: String? = "\"a\"", modified: String? = nil, date: HTTPDate? = nil, length: Int64? = 1000,
    type: String? = "audio/mpeg", encoding: String? = nil, end: Int64 = 500
) -> StoredVersion {
    let validator = Validator(
        entityTag: tag.flatMap { EntityTag(parsing: $0) }, lastModified: modified, date: date)
    return StoredVersion(
        version: ResourceVersion(
            validator: validator, length: length, contentType: type, contentEncoding: encoding, acceptsRanges: true),
        storedEnd: end)
}

/// The decision on a response to a request for `from..<end`.
func evaluate(
    _ response: HTTPResponse, from: Int64? = 500, end: Int64? = 600, stored: StoredVersion? = nil,
    rule: CombiningRule = .strong
) -> PartialResponse.Decision {
    PartialResponse.evaluate(response, askedFrom: from, askedEnd: end, stored: stored, rule: rule)
}

extension PartialResponse.Decision {
    /// The landing in the stored generation, if that is the decision.
    var landed: PartialResponse.Landing? { if case .land(let landing) = self { landing } else { nil } }
    /// The landing in a new generation, if that is the decision.
    var renewed: PartialResponse.Landing? { if case .newGeneration(let landing) = self { landing } else { nil } }
    /// The refusal, if that is the decision.
    var refusal: PartialResponse.Refusal? { if case .refuse(let refusal) = self { refusal } else { nil } }
    /// Whether the response is refused as one that contradicts itself or what was asked.
    var isMalformed: Bool { refusal?.kind == .malformed }
    /// Whether the decision is to start again.
    var isRestart: Bool { if case .restart = self { true } else { false } }
}

/// SplitMix64: the same numbers for the same seed, on every machine.
struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

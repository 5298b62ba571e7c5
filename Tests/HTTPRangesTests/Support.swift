import HTTPTypes

@testable import HTTPRanges

/// Creates header fields with these names and values, in order. The names may be in upper or lower case.
func fields(_ pairs: [(String, String)]) -> HTTPFields {
    var fields = HTTPFields()
    for (name, value) in pairs {
        if let name = HTTPField.Name(name) { fields.append(HTTPField(name: name, value: value)) }
    }
    return fields
}

/// Creates a response with this status and these header fields.
func makeResponse(_ status: Int, _ pairs: (String, String)...) -> HTTPResponse {
    HTTPResponse(status: .init(code: status), headerFields: fields(pairs))
}

/// Creates a stored version. By default, it is an MP3 file of 1000 bytes with the strong tag "a", of which 500 bytes
/// are stored.
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

/// Evaluates a response to a request for `from..<end`.
func evaluate(
    _ response: HTTPResponse, from: Int64? = 500, end: Int64? = 600, stored: StoredVersion? = nil,
    rule: CombiningRule = .strong
) -> PartialResponse.Decision {
    PartialResponse.evaluate(response, requestedStart: from, requestedEnd: end, stored: stored, rule: rule)
}

extension PartialResponse.Decision {
    /// The position in the stored version, if the response joins it.
    var accepted: PartialResponse.BodyPlacement? { if case .store(let placement) = self { placement } else { nil } }
    /// The position in a new version, if the response starts one.
    var renewed: PartialResponse.BodyPlacement? {
        if case .newGeneration(let placement) = self { placement } else { nil }
    }
    /// The rejection, if the response is rejected.
    var refusal: PartialResponse.Refusal? { if case .refuse(let refusal) = self { refusal } else { nil } }
    /// Whether the response is rejected because it contradicts itself or the request.
    var isMalformed: Bool { refusal?.kind == .malformed }
    /// Whether the request must restart.
    var isRestart: Bool { if case .restart = self { true } else { false } }
}

/// A seeded generator (SplitMix64). The same seed gives the same numbers on every machine.
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

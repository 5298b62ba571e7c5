import HTTPTypes
import Spool
import SpoolTesting

/// Who asks: what of a request tells an origin whose bytes to send, or not to send any.
struct Viewer: Sendable, Hashable {
    /// Nobody in particular, or a user with credentials of his own.
    var user = 0
    var language = 0
    /// Whether the origin refuses his credentials.
    var isRefused = false
    /// Whether the request says that nobody waits for it.
    var preloads = false

    init() {}

    /// Draws one who may ask in a play.
    init(_ plan: PlayPlan, _ random: inout SplitMix) {
        if plan.freshness == .http {
            user = random.below(3)
            language = random.below(2)
        } else if plan.refusesSome {
            user = 1
            isRefused = random.chance(2)
        }
    }

    /// Reads back who asks.
    init(_ fields: HTTPFields) {
        user = fields[.authorization].flatMap { Int($0.drop { !$0.isNumber }) } ?? 0
        language = fields[.acceptLanguage].flatMap { Int($0.drop { !$0.isNumber }) } ?? 0
        isRefused = fields[.authorization]?.hasPrefix("expired") ?? false
        preloads = fields[Self.purpose] != nil
    }

    var headerFields: HTTPFields {
        var fields = HTTPFields()
        if user > 0 { fields[.authorization] = "\(isRefused ? "expired" : "user") \(user)" }
        if language > 0 { fields[.acceptLanguage] = "x-\(language)" }
        if preloads { fields[Self.purpose] = "preload" }
        return fields
    }

    private static let purpose = HTTPField.Name("Purpose")!  // Made of letters.
}

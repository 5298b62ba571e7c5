import HTTPTypes
import Spool
import SpoolTesting

/// The parts of a request that determine which bytes an origin sends, or whether it rejects the request.
struct Viewer: Sendable, Hashable {
    /// The number of the user; 0 for none. Each user has separate credentials.
    var user = 0
    var language = 0
    /// Whether the origin rejects the credentials.
    var isRefused = false
    /// Whether the request is marked as a preload.
    var preloads = false

    init() {}

    /// Creates a random viewer for a run.
    init(_ plan: SimulationPlan, _ random: inout SplitMix) {
        if plan.freshness == .http {
            user = random.below(3)
            language = random.below(2)
        } else if plan.refusesSome {
            user = 1
            isRefused = random.chance(2)
        }
    }

    /// Creates a viewer from the header fields of a request.
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

    private static let purpose = HTTPField.Name("Purpose")!  // The name is valid.
}

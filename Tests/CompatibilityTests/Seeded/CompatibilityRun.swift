import Foundation
import Spool
import SpoolOrigin
import SpoolProxy
import SpoolTesting

/// One origin with random irregularities, and three clients that seek: two clients of the server, and a reader in an
/// app.
///
/// The expected bytes are those that a plain client receives from the origin. If the plain client does not receive the
/// media, the request is skipped.
struct CompatibilityRun {
    /// The result of a run.
    struct Result {
        var problems: [String] = []
        var compared = 0
        var skipped = 0
    }

    /// A request from a client.
    private struct Step {
        var offset: Int
        /// The number of bytes after which the client disconnects.
        var limit: Int
        var isRange: Bool
    }

    let seed: UInt64
    private let irregularities: [Irregularity]
    private let length: Int
    private let freshness: FreshnessPolicy
    private let plans: [[Step]]

    /// Creates the random run that a seed determines.
    init(seed: UInt64, isUnproven: Bool = false) {
        self.seed = seed
        var random = SplitMix(seed)
        // Most origins have a few irregularities. Some have one of each kind.
        let rarity = random.pick([2, 3, 4, 6])
        irregularities = Irregularity.Kind.allCases.compactMap { kind in
            let choices = Irregularity.all(kind) + (isUnproven && kind == .validator ? Irregularity.weakValidators : [])
            let drawn = random.pick(choices)
            return random.chance(rarity) ? drawn : nil
        }
        let length = random.pick([1, 1000, 65_536, 100_000, 200_000, 400_000]) + random.below(3)
        self.length = length
        freshness = random.pick([.http, .http, .immutable])
        plans = (0..<3).map { _ in
            (0..<2 + random.below(3)).map { _ in
                let isRange = !random.chance(3)
                return Step(
                    offset: isRange ? random.below(length) : 0, limit: random.chance(3) ? 20_000 : .max,
                    isRange: isRange)
            }
        }
    }

    /// A description of the irregularities, for failure reports.
    var description: String {
        "seed \(seed), \(length) bytes, \(freshness): " + irregularities.map(\.name).joined(separator: ", ")
    }

    private var resources: [String: OriginResource] {
        let content = OriginContent.pattern(PatternBytes(seed: seed, length: Int64(length)))
        let media = OriginResource(content, rules: irregularities.flatMap(\.rules))
        let redirects = irregularities.flatMap(\.redirects)
        guard !redirects.isEmpty else { return ["/0": media] }
        var resources = ["/\(redirects.count)": media]
        for (number, redirect) in redirects.enumerated() {
            var resource = OriginResource(.data(Data()))
            resource.refusal = OriginRefusal(
                redirect.status, redirect.fields.merging(["Location": "/\(number + 1)"]) { $1 })
            resources["/\(number)"] = resource
        }
        return resources
    }

    /// Runs the clients.
    func run() async throws -> Result {
        let expected = try await direct()
        return try await OriginServer.run(resources) { origin in
            try await CompatibilityStage.server(freshness: freshness) { server, cache in
                guard let url = server.url(for: origin.url("/0")) else {
                    throw Tool.Failed(description: "the server does not listen")
                }
                let media = cache.media(for: origin.url("/0"))
                return try await withThrowingTaskGroup(of: Result.self) { group in
                    for (number, plan) in plans.enumerated() {
                        group.addTask {
                            var result = Result()
                            for (index, step) in plan.enumerated() {
                                guard let bytes = expected[number][index] else {
                                    result.skipped += 1
                                    continue
                                }
                                result.compared += 1
                                let place = "client \(number), step \(index), from \(step.offset)"
                                do {
                                    let received =
                                        number < 2
                                        ? try await Self.request(step, url) : try await Self.read(step, media)
                                    if !Self.isEqual(received.bytes, bytes, step) {
                                        result.problems.append(
                                            "\(description): \(place) received \(received.text) instead of "
                                                + "\(bytes.count) bytes")
                                    }
                                } catch {
                                    result.problems.append("\(description): \(place): \(error)")
                                }
                            }
                            return result
                        }
                    }
                    return try await group.reduce(into: Result()) { all, result in
                        all.problems += result.problems
                        all.compared += result.compared
                        all.skipped += result.skipped
                    }
                }
            }
        }
    }

    /// Sends the requests of all steps without Spool, and returns the bytes that each receives; `nil` for a request
    /// that fails.
    private func direct() async throws -> [[[UInt8]?]] {
        try await OriginServer.run(resources) { origin in
            var all: [[[UInt8]?]] = []
            for plan in plans {
                var received: [[UInt8]?] = []
                for step in plan { received.append(try await Self.request(step, origin.url("/0")).bytes) }
                all.append(received)
            }
            return all
        }
    }

    private static func request(_ step: Step, _ url: URL) async throws -> (bytes: [UInt8]?, text: String) {
        let range = step.isRange ? "bytes=\(step.offset)-" : nil
        // If the response contains the whole resource, the client reads until it has received the bytes that it needs.
        let limit = step.limit == .max ? .max : step.offset + step.limit
        let response = try await PlainClient().get(url, range: range, limit: limit)
        let bytes = response.media(from: step.offset)
        let isComplete = response.isComplete || step.limit < .max
        return (isComplete ? bytes : nil, "\(response.status) with \(response.body.count) bytes")
    }

    private static func read(_ step: Step, _ media: MediaResource) async throws -> (bytes: [UInt8]?, text: String) {
        var bytes: [UInt8] = []
        for try await chunk in media.reader(.from(Int64(step.offset))) {
            chunk.withUnsafeBytes { bytes += $0 }
            if bytes.count >= step.limit { break }
        }
        return (bytes, "\(bytes.count) bytes")
    }

    /// Compares bytes. The number of bytes that a disconnecting client receives varies, but is at least the client's
    /// limit.
    private static func isEqual(_ received: [UInt8]?, _ expected: [UInt8], _ step: Step) -> Bool {
        guard let received else { return false }
        guard step.limit < .max else { return received == expected }
        let count = min(received.count, expected.count)
        return count >= min(step.limit, expected.count) && received.prefix(count) == expected.prefix(count)
    }
}

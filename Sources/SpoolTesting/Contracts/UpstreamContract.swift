package import Foundation
import HTTPTypes
package import Spool
package import SpoolOrigin

/// The contract of every `Upstream`, as a list of cases that do not depend on a test framework.
///
/// Run it for your own transport, with one test for each case:
///
/// ```swift
/// @Test(arguments: UpstreamContract.cases(for: UpstreamContract.Capability.all))
/// func contract(_ contractCase: UpstreamContract.Case) async throws {
///     try await contractCase.run(over: .sockets { MyUpstream(clock: $0.clock) })
/// }
/// ```
public enum UpstreamContract {
    /// A capability that some transports don't have. Cases that need a missing capability are skipped.
    #if hasAttribute(nonexhaustive)
    @nonexhaustive
    #endif
    public enum Capability: Sendable, CaseIterable {
        /// The transport pauses the origin while no reader requests the next chunk.
        case backPressure
        /// The transport delivers encoded bodies unchanged.
        case encodedBodies
        /// The transport distinguishes a truncated body without a length from a complete body.
        case cutsWithoutLength
        /// The transport follows redirects.
        case redirects
        /// The transport fails a request if the origin is silent.
        case timeouts
        /// The transport reuses connections.
        case connections
        /// The transport delivers the bytes of a response immediately, even if there are only a few.
        case promptness

        /// All capabilities.
        public static let all = Set(allCases)
    }

    /// The settings for the transport in one case.
    public struct Settings: Sendable {
        /// The clock for the timeouts of the transport. Only the test case advances it.
        public var clock = ManualClock()
    }

    /// A transport and its origin.
    package struct Fixture: Sendable {
        /// The transport under test.
        package var upstream: any Upstream
        /// The requests that the origin received, and the bytes that it sent.
        package var log: OriginLog
        /// A function that returns the URL of a path at a host.
        package var url: @Sendable (_ path: String, _ host: String) -> URL
        /// A function that resumes the stalled responses for a path.
        package var release: @Sendable (_ path: String) -> Void
        /// A function that returns the number of connections that the origin has accepted.
        package var connectionCount: @Sendable () -> Int
        /// A function that stops the origin, which is then unreachable.
        package var stop: @Sendable () async -> Void

        /// Creates a fixture from its parts.
        package init(
            upstream: any Upstream, log: OriginLog, url: @escaping @Sendable (String, String) -> URL,
            release: @escaping @Sendable (String) -> Void, connectionCount: @escaping @Sendable () -> Int,
            stop: @escaping @Sendable () async -> Void
        ) {
            self.upstream = upstream
            self.log = log
            self.url = url
            self.release = release
            self.connectionCount = connectionCount
            self.stop = stop
        }
    }

    /// A factory of fixtures.
    public struct Factory: Sendable {
        /// A function that creates a fixture whose origin serves the given resources.
        package var make: @Sendable (_ resources: [String: OriginResource], Settings) async throws -> Fixture

        /// Creates a factory from a function that creates fixtures.
        package init(make: @escaping @Sendable ([String: OriginResource], Settings) async throws -> Fixture) {
            self.make = make
        }
    }

    /// One rule for transports.
    public struct Case: Sendable, CustomStringConvertible {
        /// The rule, as a sentence.
        public var description: String
        /// The capabilities that the case needs.
        package var needs: Set<Capability>
        let settings: Settings
        let resources: [String: OriginResource]
        let body: @Sendable (Fixture, Settings) async throws -> Void

        init(
            _ description: String, needs: Set<Capability> = [], _ resources: [String: OriginResource],
            _ body: @escaping @Sendable (Fixture, Settings) async throws -> Void
        ) {
            self.description = description
            self.needs = needs
            self.settings = Settings()
            self.resources = resources
            self.body = body
        }

        /// Runs the case with its own origin.
        ///
        /// - Throws: ``ContractFailure`` if the transport violates the contract, or an unexpected error from the
        ///   transport or the origin.
        public func run(over maker: Factory) async throws {
            var settings = settings
            settings.clock = ManualClock()
            let fixture = try await maker.make(resources, settings)
            do {
                try await body(fixture, settings)
            } catch {
                await fixture.stop()
                throw error
            }
            await fixture.stop()
        }
    }

    /// Returns the cases for a transport that has the capabilities in `abilities`.
    public static func cases(for abilities: Set<Capability>) -> [Case] {
        var all = responseCases + failureCases + consumerCases + flowCases + redirectCases
        #if Tools
        all += twoOriginCases
        #endif
        return all.filter { $0.needs.isSubset(of: abilities) }
    }
}

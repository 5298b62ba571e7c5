package import Foundation
import HTTPTypes
package import Spool
package import SpoolOrigin

/// The contract of every `Upstream`, as a list of cases that need no test framework.
///
/// Run it for an upstream of your own, one test for each case:
///
/// ```swift
/// @Test(arguments: UpstreamContract.cases(for: UpstreamContract.Ability.all))
/// func contract(_ contractCase: UpstreamContract.Case) async throws {
///     try await contractCase.run(over: .sockets { MyUpstream(clock: $0.clock) })
/// }
/// ```
public enum UpstreamContract {
    /// Something that not every upstream can do; a case that needs it is left out where it is missing.
    #if hasAttribute(nonexhaustive)
    @nonexhaustive
    #endif
    public enum Ability: Sendable, CaseIterable {
        /// Stops the origin while nobody asks for the next chunk.
        case backPressure
        /// Hands on encoded bodies as they are.
        case encodedBodies
        /// Tells a body without a length that breaks off from one that ends.
        case cutsWithoutLength
        /// Follows redirects.
        case redirects
        /// Gives up on an origin that is silent.
        case timeouts
        /// Uses connections again.
        case connections
        /// Hands out the response's bytes as soon as they come, however few they are.
        case promptness

        /// All of them.
        public static let all = Set(allCases)
    }

    /// How the upstream that a case is run with has to be set up.
    public struct Settings: Sendable {
        /// The clock of its timeouts; it stands still unless the case moves it.
        public var clock = ManualClock()
    }

    /// An upstream and the origin behind it.
    package struct Fixture: Sendable {
        /// The upstream under test.
        package var upstream: any Upstream
        /// The requests that the origin received, and the bytes that it sent.
        package var log: OriginLog
        /// The URL of a path at a host.
        package var url: @Sendable (_ path: String, _ host: String) -> URL
        /// Lets responses of a path that stall go on.
        package var release: @Sendable (_ path: String) -> Void
        /// How many connections the origin has accepted.
        package var connectionCount: @Sendable () -> Int
        /// Stops the origin; afterwards it is unreachable.
        package var stop: @Sendable () async -> Void

        /// A fixture from its parts.
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

    /// How fixtures are made.
    public struct Maker: Sendable {
        /// Makes one for an origin with these resources.
        package var make: @Sendable (_ resources: [String: OriginResource], Settings) async throws -> Fixture

        /// Makes fixtures by a function.
        package init(make: @escaping @Sendable ([String: OriginResource], Settings) async throws -> Fixture) {
            self.make = make
        }
    }

    /// One thing that an upstream must do.
    public struct Case: Sendable, CustomStringConvertible {
        /// The rule that it proves, as a sentence.
        public var description: String
        /// Abilities that an upstream needs for it.
        package var needs: Set<Ability>
        let settings: Settings
        let resources: [String: OriginResource]
        let body: @Sendable (Fixture, Settings) async throws -> Void

        init(
            _ description: String, needs: Set<Ability> = [], _ resources: [String: OriginResource],
            _ body: @escaping @Sendable (Fixture, Settings) async throws -> Void
        ) {
            self.description = description
            self.needs = needs
            self.settings = Settings()
            self.resources = resources
            self.body = body
        }

        /// Runs the case against an origin of its own.
        ///
        /// - Throws: ``ContractFailure`` where the upstream does not keep the contract; else what it or the origin throws.
        public func run(over maker: Maker) async throws {
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

    /// The cases for an upstream that has `abilities`.
    public static func cases(for abilities: Set<Ability>) -> [Case] {
        var all = responseCases + failureCases + consumerCases + flowCases + redirectCases
        #if Tools
        all += twoOriginCases
        #endif
        return all.filter { $0.needs.isSubset(of: abilities) }
    }
}

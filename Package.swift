// swift-tools-version: 6.2
import PackageDescription

// Set by `make lint` and in CI only. Otherwise, warnings that a newer compiler adds would prevent users from building.
let warningsAreErrors = Context.environment["SPOOL_WARNINGS"] == "error"

// On Linux, a module named AVFoundation, based on libmpv, replaces Apple's. A target that evaluates
// `canImport(AVFoundation)` must declare it as a dependency. Otherwise the result depends on the order in which targets
// are built.
#if os(Linux)
let linuxTargets: [Target] = [
    .target(name: "CMPV"),
    .target(name: "AVFoundation", dependencies: ["CMPV"]),
    .testTarget(name: "AVFoundationTests", dependencies: ["AVFoundation"]),
    .executableTarget(
        name: "TerminalPlayer",
        dependencies: [
            "AVFoundation", "SpoolAVFoundation", "SpoolProxy", .product(name: "Logging", package: "swift-log"),
        ],
        path: "Examples/TerminalPlayer", packageAccess: false),
    .executableTarget(
        name: "LinuxPlayer", dependencies: ["AVFoundation", "SpoolAVFoundation"], path: "Examples/LinuxPlayer",
        packageAccess: false),
    .target(name: "StandInOSLog", path: "Tests/StandInOSLog"),
]
let standInAVFoundation: [Target.Dependency] = ["AVFoundation"]
let standInOSLog: [Target.Dependency] = ["StandInOSLog"]
#else
let linuxTargets: [Target] = []
let standInAVFoundation: [Target.Dependency] = []
let standInOSLog: [Target.Dependency] = []
#endif

// Only Apple's platforms read privacy manifests. Elsewhere a resource would only add a bundle to each product.
#if canImport(Darwin)
let privacyManifest: (exclude: [String], resources: [Resource]) = ([], [.copy("PrivacyInfo.xcprivacy")])
#else
let privacyManifest: (exclude: [String], resources: [Resource]) = (["PrivacyInfo.xcprivacy"], [])
#endif

// An app needs neither the command nor the test kit, and should not resolve their dependencies. Therefore, no trait is
// enabled by default, and this repository builds with `--traits Tools`. SwiftPM omits a dependency only if every
// reference to it has such a condition.
let tools = TargetDependencyCondition.when(traits: ["Tools"])
let proxy = TargetDependencyCondition.when(traits: ["Proxy"])
let metrics = TargetDependencyCondition.when(traits: ["Metrics"])
let asyncHTTPClient = TargetDependencyCondition.when(platforms: [.linux, .macOS], traits: ["AsyncHTTPClient"])

// `xcodebuild` builds every target of a scheme. If this variable is set, only the targets that run in a simulator
// remain.
let isForReport = Context.environment["SPOOL_REPORT_PACKAGE"] == "1"
let targetsOfReport: Set = [
    "ByteRanges", "XMLTokens", "HTTPRanges", "CSystemFiles", "SpoolStorage", "SpoolScheduling", "Spool", "SpoolHTTP",
    "SpoolAVFoundation", "AVFoundation", "CMPV", "AppleReportTests",
]

let package = Package(
    name: "Spool",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .library(name: "ByteRanges", targets: ["ByteRanges"]),
        .library(name: "Spool", targets: ["Spool"]),
        .library(name: "SpoolHTTP", targets: ["SpoolHTTP"]),
        .library(name: "SpoolAVFoundation", targets: ["SpoolAVFoundation"]),
        .library(name: "SpoolProxy", targets: ["SpoolProxy"]),
        .library(name: "SpoolSources", targets: ["SpoolSources"]),
        .library(name: "SpoolTesting", targets: ["SpoolTesting"]),
        .executable(name: "spool", targets: ["SpoolCLI"]),
        // This library is only for the fuzzers of this repository.
        .library(name: "_HTTPRanges", targets: ["HTTPRanges"]),
    ],
    traits: [
        .default(enabledTraits: []),
        .trait(
            name: "Tools", description: "The spool command, the origin server on sockets, and the tests.",
            enabledTraits: ["AsyncHTTPClient", "Metrics", "Proxy"]),
        .trait(name: "Metrics", description: "CacheInstrument.metrics, which counts through swift-metrics."),
        .trait(name: "Proxy", description: "SpoolProxy, which serves other players, and HLS and DASH, over localhost."),
        .trait(
            name: "AsyncHTTPClient",
            description: "AsyncHTTPClientUpstream, for servers and Linux; without it, HTTP goes over URLSession."),
        .trait(
            name: "StaticLinking",
            description: "For a command with --static-swift-stdlib: leaves out URLSession, which can't be linked so.",
            enabledTraits: ["AsyncHTTPClient"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.0.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.4.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.5.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.90.0"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.30.0"),
        .package(url: "https://github.com/apple/swift-nio-http2", from: "1.36.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.30.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.8.0"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.30.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.6.0"),
    ],
    targets: [
        .target(name: "ByteRanges"),
        .target(name: "XMLTokens"),
        .target(
            name: "HTTPRanges",
            dependencies: ["ByteRanges", .product(name: "HTTPTypes", package: "swift-http-types")]
        ),
        .target(name: "CSystemFiles"),
        .target(
            name: "SpoolStorage",
            dependencies: [
                "ByteRanges",
                .target(name: "CSystemFiles", condition: .when(platforms: [.linux])),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
            ],
            exclude: privacyManifest.exclude,
            resources: privacyManifest.resources
        ),
        .target(name: "SpoolScheduling", dependencies: ["ByteRanges"]),
        .target(
            name: "Spool",
            dependencies: [
                "ByteRanges",
                "HTTPRanges",
                "SpoolScheduling",
                "SpoolStorage",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics", condition: metrics),
            ],
            exclude: privacyManifest.exclude,
            resources: privacyManifest.resources
        ),
        .target(
            name: "SpoolHTTP",
            dependencies: [
                "HTTPRanges",
                "Spool",
                .product(name: "AsyncHTTPClient", package: "async-http-client", condition: asyncHTTPClient),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio", condition: asyncHTTPClient),
                .product(name: "NIOEmbedded", package: "swift-nio", condition: asyncHTTPClient),
                .product(name: "NIOHPACK", package: "swift-nio-http2", condition: asyncHTTPClient),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: asyncHTTPClient),
                .product(name: "NIOHTTP2", package: "swift-nio-http2", condition: asyncHTTPClient),
                .product(name: "NIOHTTPCompression", package: "swift-nio-extras", condition: asyncHTTPClient),
                .product(name: "NIOPosix", package: "swift-nio", condition: asyncHTTPClient),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: asyncHTTPClient),
            ]
        ),
        .target(
            name: "SpoolAVFoundation",
            dependencies: ["ByteRanges", "Spool", "SpoolHTTP"] + standInAVFoundation
        ),
        .target(name: "SpoolStreams", dependencies: ["ByteRanges", "HTTPRanges", "Spool", "XMLTokens"]),
        .target(name: "CDashboardFiles"),
        .target(name: "SpoolDashboard", dependencies: ["CDashboardFiles"], exclude: ["Resources"]),
        .target(
            name: "SpoolProxy",
            dependencies: [
                "ByteRanges",
                "HTTPRanges",
                "Spool",
                .target(name: "SpoolDashboard", condition: proxy),
                "SpoolHTTP",
                "SpoolStorage",
                "SpoolStreams",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio", condition: proxy),
                .product(name: "NIOPosix", package: "swift-nio", condition: proxy),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: proxy),
            ]
        ),
        .target(
            name: "SpoolSources",
            dependencies: [
                "Spool",
                "XMLTokens",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ]
        ),
        .target(
            name: "SpoolOrigin",
            dependencies: [
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio", condition: tools),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: tools),
                .product(name: "NIOPosix", package: "swift-nio", condition: tools),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: tools),
            ]
        ),
        .target(
            name: "SpoolTesting",
            dependencies: [
                "ByteRanges",
                "Spool",
                "SpoolOrigin",
                "SpoolStorage",
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ]
        ),
        .executableTarget(
            name: "SpoolCLI",
            dependencies: [
                "ByteRanges",
                "HTTPRanges",
                "Spool",
                "SpoolAVFoundation",
                "SpoolHTTP",
                "SpoolOrigin",
                "SpoolProxy",
                .product(name: "ArgumentParser", package: "swift-argument-parser", condition: tools),
                .product(name: "CryptoExtras", package: "swift-crypto"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
            ] + standInAVFoundation
        ),
        // This code uses only the public symbols, like an app.
        .target(
            name: "Examples",
            dependencies: [
                "SpoolAVFoundation", "SpoolProxy", "SpoolSources", "SpoolTesting",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
            ] + standInAVFoundation,
            path: "Examples",
            exclude: ["LinuxPlayer", "SpoolPlayer", "TerminalPlayer"],
            packageAccess: false),
        .testTarget(
            name: "ExampleTests",
            dependencies: [
                "Examples", "Spool", "SpoolAVFoundation", "SpoolOrigin", "SpoolProxy", "SpoolTesting",
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ] + standInAVFoundation),
        .testTarget(name: "ByteRangesTests", dependencies: ["ByteRanges"]),
        .testTarget(
            name: "HTTPRangesTests",
            dependencies: ["ByteRanges", "HTTPRanges", .product(name: "HTTPTypes", package: "swift-http-types")]
        ),
        .testTarget(
            name: "SpoolStorageTests",
            dependencies: [
                "ByteRanges", "SpoolStorage", "SpoolTesting",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "GRDB", package: "GRDB.swift"),
            ]
        ),
        .testTarget(
            name: "SpoolTests",
            dependencies: [
                "ByteRanges", "HTTPRanges", "Spool", "SpoolHTTP", "SpoolScheduling", "SpoolTesting",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "MetricsTestKit", package: "swift-metrics", condition: metrics),
            ]
        ),
        .testTarget(
            name: "SpoolHTTPTests",
            dependencies: [
                "Spool", "SpoolHTTP", "SpoolTesting",
                .product(name: "AsyncHTTPClient", package: "async-http-client", condition: asyncHTTPClient),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio", condition: asyncHTTPClient),
                .product(name: "NIOEmbedded", package: "swift-nio", condition: asyncHTTPClient),
                .product(name: "NIOHPACK", package: "swift-nio-http2", condition: asyncHTTPClient),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: asyncHTTPClient),
                .product(name: "NIOHTTP2", package: "swift-nio-http2", condition: asyncHTTPClient),
                .product(name: "NIOPosix", package: "swift-nio", condition: asyncHTTPClient),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: asyncHTTPClient),
            ]
        ),
        .testTarget(
            name: "SpoolProxyTests",
            dependencies: [
                "HTTPRanges", "Spool", "SpoolCLI", "SpoolDashboard", "SpoolHTTP", "SpoolOrigin", "SpoolProxy",
                "SpoolStreams", "SpoolTesting",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio", condition: tools),
                .product(name: "NIOEmbedded", package: "swift-nio", condition: tools),
                .product(name: "NIOPosix", package: "swift-nio", condition: tools),
            ]
        ),
        .testTarget(name: "SpoolStreamsTests", dependencies: ["SpoolProxy", "SpoolStreams", "SpoolTesting"]),
        .testTarget(
            name: "SpoolSourcesTests",
            dependencies: [
                "Spool", "SpoolAVFoundation", "SpoolHTTP", "SpoolOrigin", "SpoolSources", "SpoolTesting",
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ] + standInAVFoundation
        ),
        .testTarget(
            name: "PlayerTests",
            dependencies: [
                "Spool", "SpoolHTTP", "SpoolOrigin", "SpoolProxy", "SpoolTesting",
                .product(name: "AsyncHTTPClient", package: "async-http-client", condition: tools),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio", condition: tools),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: tools),
            ],
            exclude: ["Scripts"]
        ),
        .testTarget(
            name: "CompatibilityTests",
            dependencies: [
                "ByteRanges", "Spool", "SpoolHTTP", "SpoolOrigin", "SpoolProxy", "SpoolStreams", "SpoolTesting",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio", condition: tools),
                .product(name: "NIOPosix", package: "swift-nio", condition: tools),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: tools),
            ]
        ),
        .testTarget(
            name: "SpoolTestingTests",
            dependencies: [
                "HTTPRanges", "Spool", "SpoolTesting",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio", condition: tools),
                .product(name: "NIOPosix", package: "swift-nio", condition: tools),
            ]
        ),
        .testTarget(
            name: "SpoolAVFoundationTests",
            dependencies: [
                "ByteRanges", "HTTPRanges", "Spool", "SpoolAVFoundation", "SpoolHTTP", "SpoolProxy",
                "SpoolTesting",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
            ] + standInAVFoundation + standInOSLog
        ),
        // This target does not need a trait, so that it also runs in a simulator; see the Makefile.
        .testTarget(
            name: "AppleReportTests",
            dependencies: [
                .target(name: "CSystemFiles", condition: .when(platforms: [.linux])), "Spool", "SpoolAVFoundation",
            ] + standInAVFoundation
        ),
        .testTarget(
            name: "SimulationTests",
            dependencies: [
                "ByteRanges", "Spool", "SpoolTesting",
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
            ]
        ),
        .testTarget(
            name: "SpoolCLITests",
            dependencies: [
                "ByteRanges", "Spool", "SpoolCLI", "SpoolTesting",
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ]
        ),
    ] + linuxTargets
)

if isForReport {
    package.targets.removeAll { !targetsOfReport.contains($0.name) }
    package.products.removeAll { !targetsOfReport.contains($0.name) }
}

for target in package.targets where !["CDashboardFiles", "CMPV", "CSystemFiles"].contains(target.name) {
    target.swiftSettings = [
        .swiftLanguageMode(.v6),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    ]
    if warningsAreErrors { target.swiftSettings?.append(.treatAllWarnings(as: .error)) }
}

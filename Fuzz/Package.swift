// swift-tools-version: 6.2
import PackageDescription

// Fuzzers for the code that parses untrusted input. Parsers are fuzzed with coverage guidance, but only on Linux,
// because Apple's toolchains have no libFuzzer. Whole responses are fuzzed over a socket. README.md describes how to
// run the fuzzers.
//
// The fuzzers use internal API. They are compiled under the name of the package in the parent directory, so that they
// count as part of that package. Its name is the name of its directory.
let directory = Context.packageDirectory.split(separator: "/").dropLast().last ?? ""
let packageName = String(directory.lowercased().map { $0.isLetter || $0.isNumber ? $0 : "_" })

let settings: [SwiftSetting] = [
    .unsafeFlags(["-package-name", packageName]),
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

let package = Package(
    name: "SpoolFuzz",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "Spool", path: "..", traits: ["Tools"]),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.4.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
    ],
    targets: [
        .target(name: "CLibFuzzer"),
        .executableTarget(
            name: "FuzzHTTPRanges",
            dependencies: [
                "CLibFuzzer",
                .product(name: "_HTTPRanges", package: "Spool"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ],
            packageAccess: false,
            swiftSettings: settings,
            // libFuzzer has its own main function. Ours is linked first, and calls libFuzzer's loop.
            linkerSettings: [.unsafeFlags(["-use-ld=lld", "-Xlinker", "--allow-multiple-definition"])]
        ),
        .executableTarget(
            name: "FuzzResponses",
            dependencies: [
                .product(name: "Spool", package: "Spool"),
                .product(name: "SpoolHTTP", package: "Spool"),
                .product(name: "SpoolTesting", package: "Spool"),
                .product(name: "Logging", package: "swift-log"),
            ],
            packageAccess: false,
            swiftSettings: settings
        ),
    ]
)

// swift-tools-version: 6.2
import PackageDescription

// Fuzzing of what reads bytes from outside: coverage-guided for parsers (Linux only: Apple's toolchains bring no
// libFuzzer), and whole responses over a socket. See README.md for how to run it.
// What they fuzz is more than apps are shown: without `packageAccess` of their own, they count as part of the package
// beside them, whose name in the compiler is that of its directory.
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
        .package(name: "Spool", path: ".."),
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
            // libFuzzer brings a main of its own; ours, which comes first, calls its loop.
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

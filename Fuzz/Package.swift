// swift-tools-version: 6.2
import PackageDescription

// Coverage-guided fuzzing of what reads bytes from outside. Linux only: Apple's toolchains bring no libFuzzer.
// See README.md for how to run it.
let package = Package(
    name: "SpoolFuzz",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "Spool", path: ".."),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    ],
    targets: [
        .target(name: "CLibFuzzer"),
        .executableTarget(
            name: "FuzzHTTPRanges",
            dependencies: [
                "CLibFuzzer",
                .product(name: "HTTPRanges", package: "Spool"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ],
            swiftSettings: [
                .swiftLanguageMode(.v6),
                .enableUpcomingFeature("ExistentialAny"),
                .enableUpcomingFeature("MemberImportVisibility"),
                .enableUpcomingFeature("InternalImportsByDefault"),
                .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
            ],
            // libFuzzer brings a main of its own; ours, which comes first, calls its loop.
            linkerSettings: [.unsafeFlags(["-use-ld=lld", "-Xlinker", "--allow-multiple-definition"])]
        ),
    ]
)

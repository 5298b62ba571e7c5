// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that nobody who uses Spool builds its benchmarks.
let package = Package(
    name: "SpoolBenchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "Spool", path: "..")
    ],
    targets: [
        .executableTarget(
            name: "SpoolBenchmarks",
            dependencies: [
                .product(name: "ByteRanges", package: "Spool")
            ]
        )
    ]
)

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]
for target in package.targets {
    target.swiftSettings = (target.swiftSettings ?? []) + settings
}

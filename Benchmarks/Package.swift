// swift-tools-version: 6.2
import PackageDescription

// A separate package, so that users of Spool do not build its benchmarks.
let package = Package(
    name: "SpoolBenchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "Spool", path: "..", traits: ["Tools"]),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.0.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.4.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.8.0"),
    ],
    targets: [
        .executableTarget(
            name: "SpoolBenchmarks",
            dependencies: [
                .product(name: "ByteRanges", package: "Spool"),
                .product(name: "Spool", package: "Spool"),
                .product(name: "SpoolAVFoundation", package: "Spool"),
                .product(name: "SpoolHTTP", package: "Spool"),
                // The benchmarks run this command, so it is built together with them.
                .product(name: "spool", package: "Spool"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ],
            packageAccess: false
        )
    ]
)

// The benchmarks use internal API. They are compiled under the name of the package in the parent directory, so that
// they count as part of that package. Its name is the name of its directory.
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
for target in package.targets {
    target.swiftSettings = (target.swiftSettings ?? []) + settings
}

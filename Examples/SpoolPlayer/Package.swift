// swift-tools-version: 6.2
import PackageDescription

// This package contains the whole app except its entry point. The Xcode project depends on this package instead of
// Spool, so that the package can select Spool's traits. Not every version of Xcode can select traits in a project. The
// app needs the trait for HLS playback, but not the trait for the tools.
let package = Package(
    name: "SpoolPlayerKit",
    platforms: [.macOS(.v15), .iOS(.v18)],
    products: [.library(name: "SpoolPlayerKit", targets: ["SpoolPlayerKit"])],
    dependencies: [.package(name: "Spool", path: "../..", traits: ["Proxy"])],
    targets: [
        .target(
            name: "SpoolPlayerKit",
            dependencies: [
                .product(name: "SpoolAVFoundation", package: "Spool"),
                .product(name: "SpoolProxy", package: "Spool"),
                .product(name: "SpoolSources", package: "Spool"),
            ])
    ]
)

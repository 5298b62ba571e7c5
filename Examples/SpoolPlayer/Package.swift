// swift-tools-version: 6.2
import PackageDescription

// Everything of the app but its entry point. It stands between the Xcode project and Spool to choose Spool's traits, which
// not every version of Xcode can do for a package that a project depends on: here those of an app that plays HLS, and none
// of the tools.
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

/// The version of this package, as origins are told it.
package enum SpoolVersion {
    /// Major, minor and patch (Semantic Versioning).
    package static let current = "0.1.0"
}

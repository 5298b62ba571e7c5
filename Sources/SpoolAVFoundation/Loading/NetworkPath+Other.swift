#if canImport(AVFoundation) && !os(watchOS) && !canImport(Network)
/// Where no system tells when there is a network again: requests are tried again after a while.
final class NetworkPath: Sendable {
    init(_ returned: @escaping @Sendable () -> Void) {}
}
#endif

#if canImport(AVFoundation) && !os(watchOS) && !canImport(Network)
/// A replacement for systems without network observation, where requests are only retried after a delay.
final class NetworkPath: Sendable {
    init(_ returned: @escaping @Sendable () -> Void) {}
}
#endif

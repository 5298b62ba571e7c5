#if canImport(AVFoundation) && !os(watchOS) && !canImport(Network)
/// A replacement for the observation of the network on other systems. Requests are retried after a delay.
final class NetworkPath: Sendable {
    init(_ returned: @escaping @Sendable () -> Void) {}
}
#endif

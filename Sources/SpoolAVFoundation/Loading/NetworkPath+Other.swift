#if canImport(AVFoundation) && !os(watchOS) && !canImport(Network)
/// A placeholder for systems without network observation, where requests are retried only after a delay.
final class NetworkPath: Sendable {
    init(_ returned: @escaping @Sendable () -> Void) {}
}
#endif

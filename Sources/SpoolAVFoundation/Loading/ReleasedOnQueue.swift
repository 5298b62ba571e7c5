#if canImport(AVFoundation) && !os(watchOS)
/// Something whose last reference is to go on a queue.
///
/// `@unchecked Sendable`: nobody gets at the value; it is only carried to where it is released.
final class ReleasedOnQueue<Value>: @unchecked Sendable {
    private let value: Value

    init(_ value: Value) { self.value = value }
}
#endif

#if canImport(AVFoundation) && !os(watchOS)
/// Which object it was, for later: as long as this is kept, no other can be where that was.
///
/// `@unchecked Sendable`: the object is only kept and compared.
struct ObjectIdentity: @unchecked Sendable {
    private let object: AnyObject

    init(_ object: AnyObject) { self.object = object }

    func isOf(_ other: AnyObject?) -> Bool { object === other }
}
#endif

/// The stored part of a resource, for a response to be evaluated against.
public struct StoredVersion: Sendable, Hashable {
    /// The version that the stored bytes are of.
    public var version: ResourceVersion
    /// The end of the furthest byte held, so that a length below it is a contradiction; 0 if none.
    public var storedEnd: Int64

    /// A stored version. Where no byte has landed and no transfer is under way either, nothing is stored: pass
    /// nil to ``PartialResponse`` instead.
    public init(version: ResourceVersion, storedEnd: Int64) {
        self.version = version
        self.storedEnd = storedEnd
    }
}

/// The stored part of a resource, for a response to be evaluated against.
package struct StoredVersion: Sendable, Hashable {
    /// The version that the stored bytes are of.
    package var version: ResourceVersion
    /// The end of the furthest byte held, so that a length below it is a contradiction; 0 if none.
    package var storedEnd: Int64

    /// A stored version. Where no byte has landed and no transfer is under way either, nothing is stored: pass
    /// nil to ``PartialResponse`` instead.
    package init(version: ResourceVersion, storedEnd: Int64) {
        self.version = version
        self.storedEnd = storedEnd
    }
}

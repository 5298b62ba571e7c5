/// Names one transfer of an open resource; a later transfer has a greater name.
package struct TransferID: Hashable, Comparable, Sendable {
    let number: Int
    package static func < (a: TransferID, b: TransferID) -> Bool { a.number < b.number }
}

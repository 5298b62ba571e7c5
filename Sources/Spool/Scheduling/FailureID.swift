/// Names why bytes of one place will not come; whoever runs the transfers keeps the error itself.
package struct FailureID: Hashable, Comparable, Sendable {
    let number: Int
    package static func < (a: FailureID, b: FailureID) -> Bool { a.number < b.number }
}

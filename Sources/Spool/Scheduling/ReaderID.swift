/// Names one reader of an open resource; a later reader has a greater name.
package struct ReaderID: Hashable, Comparable, Sendable {
    let number: Int
    package static func < (a: ReaderID, b: ReaderID) -> Bool { a.number < b.number }
}

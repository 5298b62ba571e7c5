/// An error that states why the rest of an XML document cannot be read.
package enum XMLError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The document contains a document type declaration, which could define entities.
    case documentType(at: Int)
    /// The document is not XML.
    case malformed(String)
    /// A tag has more attributes than the limit.
    case tooLarge(String)

    package var description: String {
        switch self {
        case .documentType(let place):
            "the document type declaration at byte \(place) is not supported"
        case .malformed(let text), .tooLarge(let text): text
        }
    }
}

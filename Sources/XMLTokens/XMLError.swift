/// Why an XML document can't be read on: each says what is wrong, and at which byte.
package enum XMLError: Error, Hashable, Sendable, CustomStringConvertible {
    /// It has a document type, which could define entities.
    case documentType(at: Int)
    /// It is no XML.
    case malformed(String)
    /// A tag has more in it than is read.
    case tooLarge(String)

    package var description: String {
        switch self {
        case .documentType(let place):
            "there is a document type at byte \(place), and only documents without one are read"
        case .malformed(let text), .tooLarge(let text): text
        }
    }
}

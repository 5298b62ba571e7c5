/// Why an XML document can't be read on.
package struct XMLError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong, by kind.
    package enum Code: Hashable, Sendable {
        /// It has a document type, which could define entities.
        case documentType
        /// It is no XML.
        case malformed
        /// A tag has more in it than is read.
        case tooLarge
    }

    /// The kind.
    package let code: Code
    /// What is wrong, and at which byte: “the comment at byte 22 has no end”.
    package let description: String

    init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }
}

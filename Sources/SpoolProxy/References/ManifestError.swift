#if Proxy
/// Why a manifest can't be read, rewritten or brought whole.
package struct ManifestError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong, by kind.
    package enum Code: Hashable, Sendable {
        /// It, what would become of it, or a number of things in it is beyond a limit.
        case tooLarge
        /// It is not what it was taken for, or contradicts its own format.
        case malformed
        /// It asks for what is refused in a document from outside: a document type, an encoding other than UTF-8.
        case refused
        /// It has no end yet, so it can't be brought whole.
        case live
        /// It names something that can't be asked for.
        case address
    }

    /// The kind.
    package let code: Code
    /// A sentence that says what is wrong, and in which line where there is one; no query of any address.
    package let description: String

    init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }
}
#endif

#if Proxy
/// Why an address can't be asked through the proxy.
package struct AddressError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong, by kind: a server says 400 to each of them.
    package enum Code: Hashable, Sendable {
        /// It does not begin with `/http/` or `/https/`, or is no `http` or `https` URL.
        case scheme
        /// There is no host, or none that a name or an IP address could be.
        case host
        /// The port is not 1 to 65535.
        case port
        /// It names a user or a password, which an address of the proxy has no place for.
        case userInformation
        /// It holds a character that no address has: white space, a control character, or a fragment.
        case characters
    }

    /// The kind.
    package let code: Code
    /// A sentence that names what was asked for, without its query, and what is wrong with it.
    package let description: String

    init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }
}
#endif

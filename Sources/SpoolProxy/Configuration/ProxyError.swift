#if Proxy
/// Why a server could not start.
public struct ProxyError: Error, Sendable, CustomStringConvertible {
    /// What kind of failure it is.
    public struct Code: Sendable, Hashable {
        private enum Value: Sendable, Hashable { case configuration, address }
        private let value: Value

        /// The configuration contradicts itself, or lacks what the address needs.
        public static var configuration: Code { Code(value: .configuration) }
        /// The address can't be listened on.
        public static var address: Code { Code(value: .address) }
    }

    /// What kind of failure it is.
    public let code: Code
    /// A sentence that names the address or the value and the cause.
    public let description: String
    /// What was reported from below, if anything.
    public let underlying: (any Error)?

    init(_ code: Code, _ description: String, underlying: (any Error)? = nil) {
        self.code = code
        self.description = description
        self.underlying = underlying
    }
}
#endif

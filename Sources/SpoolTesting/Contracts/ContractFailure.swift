/// Says what an implementation did that its contract does not allow.
public struct ContractFailure: Error, CustomStringConvertible {
    /// The expectation, and what came instead.
    public var message: String
    /// Where it was expected.
    package var location: String

    /// A failure found at a line of the contract.
    package init(_ message: String, file: String = #fileID, line: Int = #line) {
        self.message = message
        location = "\(file):\(line)"
    }

    /// The message and where it comes from.
    public var description: String { "\(location): \(message)" }
}

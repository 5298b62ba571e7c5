#if Proxy
/// A value that is encoded as `null` in JSON if it is missing, instead of being omitted.
@propertyWrapper package struct EncodedAsNull<Value: Encodable & Sendable>: Encodable, Sendable {
    /// The value.
    package var wrappedValue: Value?

    /// Creates a value that may be missing.
    package init(wrappedValue: Value?) { self.wrappedValue = wrappedValue }

    /// Encodes the value, or `null`.
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        if let wrappedValue { try container.encode(wrappedValue) } else { try container.encodeNil() }
    }
}

extension EncodedAsNull: Equatable where Value: Equatable {}

extension EncodedAsNull: Hashable where Value: Hashable {}
#endif

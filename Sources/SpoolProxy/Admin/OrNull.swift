#if Proxy
/// A value that JSON shows as `null` when there is none, instead of leaving its name out.
@propertyWrapper package struct OrNull<Value: Encodable & Sendable>: Encodable, Sendable {
    /// The value.
    package var wrappedValue: Value?

    /// A value, or none.
    package init(wrappedValue: Value?) { self.wrappedValue = wrappedValue }

    /// The value, or `null`.
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        if let wrappedValue { try container.encode(wrappedValue) } else { try container.encodeNil() }
    }
}
#endif

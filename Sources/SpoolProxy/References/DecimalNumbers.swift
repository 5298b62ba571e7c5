#if Proxy
/// Numbers as manifests have them; nil for anything else, and for what does not fit.
enum DecimalNumbers {
    /// A decimal integer from 0 to `Int64.max`.
    static func integer(_ bytes: ArraySlice<UInt8>) -> Int64? {
        guard !bytes.isEmpty else { return nil }
        var value: Int64 = 0
        for byte in bytes {
            guard byte.isASCIIDigit else { return nil }
            let (tens, overflows) = value.multipliedReportingOverflow(by: 10)
            let (sum, carries) = tens.addingReportingOverflow(Int64(byte - UInt8(ascii: "0")))
            guard !overflows, !carries else { return nil }
            value = sum
        }
        return value
    }

    /// Seconds: a decimal number that is neither negative nor above 10⁹.
    static func seconds(_ bytes: ArraySlice<UInt8>) -> Double? {
        guard !bytes.isEmpty, bytes.count <= 64, bytes.allSatisfy({ $0.isASCIIDigit || $0 == UInt8(ascii: ".") }) else {
            return nil
        }
        return Double(String(decoding: bytes, as: UTF8.self)).flatMap { $0 <= 1e9 ? $0 : nil }
    }
}
#endif

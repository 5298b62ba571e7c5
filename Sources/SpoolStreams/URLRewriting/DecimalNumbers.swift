/// Parsers of the numbers in manifests. They return `nil` for any other text and for numbers that are too large.
enum DecimalNumbers {
    /// Reads a decimal integer from 0 to `Int64.max`.
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

    /// Reads a decimal number of seconds from 0 to 10⁹.
    static func seconds(_ bytes: ArraySlice<UInt8>) -> Double? {
        guard !bytes.isEmpty, bytes.count <= 64, bytes.allSatisfy({ $0.isASCIIDigit || $0 == UInt8(ascii: ".") }) else {
            return nil
        }
        return Double(String(decoding: bytes, as: UTF8.self)).flatMap { $0 <= 1e9 ? $0 : nil }
    }

    /// Reads an `xs:duration` without years or months, such as `P1DT2H3M4.5S`, as seconds from 0 to 10⁹.
    static func duration(_ bytes: ArraySlice<UInt8>) -> Double? {
        var rest = bytes
        guard rest.popFirst() == UInt8(ascii: "P"), bytes.count <= 64 else { return nil }
        var units: [(letter: UInt8, seconds: Double)] = [(UInt8(ascii: "D"), 86400)]
        var total = 0.0
        while let first = rest.first {
            if first == UInt8(ascii: "T") {
                units = [(UInt8(ascii: "H"), 3600), (UInt8(ascii: "M"), 60), (UInt8(ascii: "S"), 1)]
                rest = rest.dropFirst()
                continue
            }
            let digits = rest.prefix { $0.isASCIIDigit || $0 == UInt8(ascii: ".") }
            rest = rest[digits.endIndex...]
            guard let number = seconds(digits), let letter = rest.popFirst(),
                let unit = units.firstIndex(where: { $0.letter == letter })
            else { return nil }
            total += number * units[unit].seconds
            units.removeSubrange(...unit)
        }
        return total <= 1e9 ? total : nil
    }
}

#if Proxy
/// Pairs of numbers as playlists have them (RFC 8216 §4.2); nil for anything else, and for what does not fit.
enum HLSNumbers {
    /// `1280x720`.
    static func resolution(_ bytes: ArraySlice<UInt8>) -> HLSResolution? {
        let parts = bytes.split(separator: UInt8(ascii: "x"), omittingEmptySubsequences: false)
        guard parts.count == 2, let width = DecimalNumbers.integer(parts[0]),
            let height = DecimalNumbers.integer(parts[1])
        else { return nil }
        return HLSResolution(width: width, height: height)
    }

    /// `length` or `length@offset`; offset nil where there is none.
    static func byteRange(_ bytes: ArraySlice<UInt8>) -> (length: Int64, offset: Int64?)? {
        let parts = bytes.split(separator: UInt8(ascii: "@"), maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, let length = DecimalNumbers.integer(first) else { return nil }
        guard parts.count == 2 else { return (length, nil) }
        return DecimalNumbers.integer(parts[1]).map { (length, $0) }
    }
}
#endif

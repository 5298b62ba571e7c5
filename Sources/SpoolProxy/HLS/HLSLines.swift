#if Proxy
/// The lines of a playlist (RFC 8216 §4.1), as places in its bytes: they end with LF or CRLF.
struct HLSLines: Sequence, IteratorProtocol {
    private var rest: ArraySlice<UInt8>

    /// A byte order mark at the beginning is left out: no playlist may have one, and some do.
    init(_ bytes: ArraySlice<UInt8>) {
        rest = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes
    }

    /// Whether the first line is `#EXTM3U`.
    static func isPlaylist(_ bytes: ArraySlice<UInt8>) -> Bool {
        let text = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes
        var lines = HLSLines(text)
        return text.first == UInt8(ascii: "#") && lines.next()?.bytes.elementsEqual("#EXTM3U".utf8) == true
    }

    mutating func next() -> HLSLine? {
        guard !rest.isEmpty else { return nil }
        let end = rest.firstIndex(of: UInt8(ascii: "\n")) ?? rest.endIndex
        var line = rest[rest.startIndex..<end]
        rest = rest[Swift.min(end + 1, rest.endIndex)...]
        if line.last == UInt8(ascii: "\r") { line = line.dropLast() }
        return HLSLine(line)
    }
}

/// One line: blank, a URI, a comment or a tag.
struct HLSLine {
    /// Without white space around it.
    let bytes: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) {
        let isSpace = { (byte: UInt8) in byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        let trimmed = bytes.drop(while: isSpace)
        self.bytes = trimmed[..<((trimmed.lastIndex { !isSpace($0) }).map { $0 + 1 } ?? trimmed.startIndex)]
    }

    /// Whether it is a URI; unlike players, takes white space around it for none of it.
    var isURI: Bool { bytes.first.map { $0 != UInt8(ascii: "#") } ?? false }

    /// A tag's name with `#EXT`, and what follows its colon.
    var tag: (name: ArraySlice<UInt8>, value: ArraySlice<UInt8>)? {
        guard bytes.starts(with: "#EXT".utf8) else { return nil }
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else { return (bytes, bytes.suffix(0)) }
        return (bytes[..<colon], bytes[(colon + 1)...])
    }

    /// Whether it is a tag that no plain list has.
    var isHLSTag: Bool { bytes.starts(with: "#EXT-X-".utf8) || bytes.starts(with: "#EXTINF:".utf8) }
}
#endif

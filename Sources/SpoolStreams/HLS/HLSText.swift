/// The lines of a playlist (RFC 8216 §4.1), with their byte ranges in the playlist. Lines end with LF or CRLF. As in
/// players, a single CR also ends a line.
struct HLSLines: Sequence, IteratorProtocol {
    private var rest: ArraySlice<UInt8>

    /// Creates a sequence of the lines in a playlist. A byte order mark is skipped. The RFC forbids byte order marks,
    /// but some playlists start with one.
    init(_ bytes: ArraySlice<UInt8>) {
        rest = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes
    }

    /// Returns whether the text starts with `#EXTM3U`. Players ignore the rest of the first line, even if no white
    /// space precedes it.
    static func isPlaylist(_ bytes: ArraySlice<UInt8>) -> Bool {
        (bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes).starts(with: "#EXTM3U".utf8)
    }

    /// Returns whether the text is a list of files without `#EXTM3U`. The first line that is neither empty nor a
    /// comment must be a URL or a path.
    static func isPlainList(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard let line = HLSLines(bytes).first(where: \.isURI) else { return false }
        let text = String(decoding: line.bytes, as: UTF8.self)
        guard let first = text.first, !"<{[".contains(first), !line.bytes.contains(where: { $0 < 0x20 }) else {
            return false
        }
        return text.contains("://") || text.contains(/\.[A-Za-z0-9]{2,5}$/) || text.contains("/") && !text.contains(" ")
    }

    mutating func next() -> HLSLine? {
        guard !rest.isEmpty else { return nil }
        let end = rest.firstIndex { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") } ?? rest.endIndex
        var next = Swift.min(end + 1, rest.endIndex)
        if rest[end..<next].first == UInt8(ascii: "\r"), rest[next...].first == UInt8(ascii: "\n") { next += 1 }
        let line = HLSLine(rest[..<end], range: rest.startIndex..<next)
        rest = rest[next...]
        return line
    }
}

/// One line: blank, a URI, a comment or a tag.
struct HLSLine {
    /// The text without surrounding white space. Players treat such white space as part of a URI, but this type does
    /// not.
    let bytes: ArraySlice<UInt8>
    /// The byte range of the whole line in the playlist, including its end.
    let range: Range<Int>

    fileprivate init(_ bytes: ArraySlice<UInt8>, range: Range<Int>) {
        let isSpace = { (byte: UInt8) in byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        let trimmed = bytes.drop(while: isSpace)
        self.bytes = trimmed[..<((trimmed.lastIndex { !isSpace($0) }).map { $0 + 1 } ?? trimmed.startIndex)]
        self.range = range
    }

    /// Whether this line is a URI.
    var isURI: Bool { bytes.first.map { $0 != UInt8(ascii: "#") } ?? false }

    /// The name of a tag, which starts with `#EXT`, and the text after its colon. It is `nil` for other lines.
    var tag: (name: ArraySlice<UInt8>, value: ArraySlice<UInt8>)? {
        guard bytes.starts(with: "#EXT".utf8) else { return nil }
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else { return (bytes, bytes.suffix(0)) }
        return (bytes[..<colon], bytes[(colon + 1)...])
    }

    /// Whether this line is a tag of HLS playlists. Some plain lists of stations or files also contain `#EXTINF`.
    var isHLSTag: Bool { isOnlyInHLS || bytes.starts(with: "#EXTINF:".utf8) }

    /// Whether this line is a tag that only HLS playlists contain.
    var isOnlyInHLS: Bool { bytes.starts(with: "#EXT-X-".utf8) }
}

/// A tag that Spool reads. All other tags are ignored, as the RFC requires.
///
/// Players request the interstitials of `EXT-X-DATERANGE` (RFC 8216bis, appendix D.2). `EXT-X-PREFETCH` is not in the
/// RFC, but some players and servers use it for the next segments.
enum HLSTag: String {
    case segment = "#EXTINF"
    case byteRange = "#EXT-X-BYTERANGE"
    case targetDuration = "#EXT-X-TARGETDURATION"
    case endList = "#EXT-X-ENDLIST"
    case discontinuity = "#EXT-X-DISCONTINUITY"
    case gap = "#EXT-X-GAP"
    case map = "#EXT-X-MAP"
    case key = "#EXT-X-KEY"
    case mediaSequence = "#EXT-X-MEDIA-SEQUENCE"
    case playlistType = "#EXT-X-PLAYLIST-TYPE"
    case discontinuitySequence = "#EXT-X-DISCONTINUITY-SEQUENCE"
    case iFramesOnly = "#EXT-X-I-FRAMES-ONLY"
    case part = "#EXT-X-PART"
    case partInformation = "#EXT-X-PART-INF"
    case renditionReport = "#EXT-X-RENDITION-REPORT"
    case preloadHint = "#EXT-X-PRELOAD-HINT"
    case serverControl = "#EXT-X-SERVER-CONTROL"
    case skip = "#EXT-X-SKIP"
    case define = "#EXT-X-DEFINE"
    case variant = "#EXT-X-STREAM-INF"
    case rendition = "#EXT-X-MEDIA"
    case iFrameStream = "#EXT-X-I-FRAME-STREAM-INF"
    case imageStream = "#EXT-X-IMAGE-STREAM-INF"
    case sessionKey = "#EXT-X-SESSION-KEY"
    case sessionData = "#EXT-X-SESSION-DATA"
    case contentSteering = "#EXT-X-CONTENT-STEERING"
    case dateRange = "#EXT-X-DATERANGE"
    case prefetch = "#EXT-X-PREFETCH"

    init?(_ name: ArraySlice<UInt8>) {
        guard name.count <= 32 else { return nil }
        self.init(rawValue: String(decoding: name, as: UTF8.self))
    }

    /// Whether the value of the tag is a list of attributes that Spool reads.
    var hasAttributes: Bool {
        switch self {
        case .segment, .byteRange, .targetDuration, .endList, .discontinuity, .gap, .mediaSequence, .playlistType,
            .discontinuitySequence, .iFramesOnly, .partInformation, .skip, .prefetch:
            false
        default: true
        }
    }

    /// The attributes whose values are references.
    var referenceAttributes: [StaticString] {
        switch self {
        case .key, .map, .rendition, .iFrameStream, .sessionKey, .sessionData, .part, .preloadHint, .renditionReport,
            .imageStream:
            ["URI"]
        case .contentSteering: ["SERVER-URI"]
        case .dateRange: ["X-ASSET-URI", "X-ASSET-LIST"]
        default: []
        }
    }
}

/// The attributes of a tag, according to the grammar in RFC 8216 §4.2. Commas and equals signs in quotes are part of
/// the value.
///
/// The parser is as lenient as players. White space around names and values is ignored, and names may contain lowercase
/// letters. A quoted value may contain quotes that are not followed by a comma. After any other error, reading
/// continues after the next comma.
struct HLSAttributeList {
    struct Attribute {
        let name: ArraySlice<UInt8>
        /// The value without its quotes.
        let value: ArraySlice<UInt8>
        let isQuoted: Bool

        func isNamed(_ text: StaticString) -> Bool {
            name.elementsEqual(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
        }
    }

    private(set) var attributes: [Attribute] = []
    /// Whether the whole list was read.
    private(set) var isWellFormed = true

    init(_ bytes: ArraySlice<UInt8>) {
        var rest = bytes
        while true {
            rest = rest.drop(while: Self.isWhitespace)
            if rest.isEmpty { return }
            if let attribute = attribute(&rest) {
                attributes.append(attribute)
            } else {
                isWellFormed = false
                rest = rest.drop { $0 != UInt8(ascii: ",") }.dropFirst()
            }
        }
    }

    /// Parses one attribute, and removes it and the comma after it from `rest`.
    private mutating func attribute(_ rest: inout ArraySlice<UInt8>) -> Attribute? {
        let name = rest.prefix { byte in
            (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) || byte.isASCIIDigit
                || byte == UInt8(ascii: "-")
        }
        rest = rest[name.endIndex...]
        if rest.first.map(Self.isWhitespace) == true { isWellFormed = false }
        rest = rest.drop(while: Self.isWhitespace)
        guard !name.isEmpty, rest.first == UInt8(ascii: "=") else { return nil }
        rest = rest.dropFirst().drop(while: Self.isWhitespace)
        let isQuoted = rest.first == UInt8(ascii: "\"")
        guard let value = isQuoted ? quotedValue(&rest) : Self.value(&rest) else { return nil }
        rest = rest.dropFirst()
        return Attribute(name: name, value: value, isQuoted: isQuoted)
    }

    /// Removes a quoted value from `rest`, and returns it without its quotes. The result is `nil` if the value lacks a
    /// closing quote that is followed by a comma or the end of the list.
    private mutating func quotedValue(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        let (line, start) = (rest, rest.startIndex + 1)
        var after = rest.dropFirst()
        // This limit keeps the total time linear.
        for _ in 0..<16 {
            guard let quote = after.firstIndex(of: UInt8(ascii: "\"")) else { return nil }
            after = after[(quote + 1)...]
            let next = after.drop(while: Self.isWhitespace)
            guard next.isEmpty || next.first == UInt8(ascii: ",") else {
                isWellFormed = false
                continue
            }
            rest = next
            return line[start..<quote]
        }
        return nil
    }

    /// Removes a value without quotes from `rest`, and returns it.
    private static func value(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        var value = rest.prefix { $0 != UInt8(ascii: ",") }
        guard !value.contains(UInt8(ascii: "\"")) else { return nil }
        rest = rest[value.endIndex...]
        while value.last.map(isWhitespace) == true { value = value.dropLast() }
        return value.isEmpty ? nil : value
    }

    private static func isWhitespace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }

    /// Returns the first attribute with the given name.
    func first(_ name: StaticString) -> Attribute? { attributes.first { $0.isNamed(name) } }

    /// Returns a quoted string, or `nil` if the attribute is missing, not quoted or not UTF-8.
    func string(_ name: StaticString) -> String? {
        first(name).flatMap { $0.isQuoted ? String(validating: $0.value, as: UTF8.self) : nil }
    }

    /// Returns an enumerated string, or `nil` if the attribute is missing or quoted.
    func symbol(_ name: StaticString) -> String? {
        first(name).flatMap { $0.isQuoted ? nil : String(validating: $0.value, as: UTF8.self) }
    }

    /// Returns a string with or without quotes, as players read URIs, or `nil` if the attribute is missing.
    func text(_ name: StaticString) -> String? {
        first(name).flatMap { String(validating: $0.value, as: UTF8.self) }
    }

    /// Returns a bit rate, or `nil` if the attribute is missing or not a number. Some playlists enclose the number in
    /// quotes.
    func bitRate(_ name: StaticString) -> Int64? { first(name).flatMap { DecimalNumbers.integer($0.value) } }

    /// Returns a decimal integer, or `nil` if the attribute is missing, quoted or not a number.
    func integer(_ name: StaticString) -> Int64? {
        first(name).flatMap { $0.isQuoted ? nil : DecimalNumbers.integer($0.value) }
    }
}

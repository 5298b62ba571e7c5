#if Proxy
import ByteRanges

extension HLSPlaylist {
    /// Reads a playlist line by line; tags and attributes that it does not know are passed over.
    ///
    /// - Parameters:
    ///   - bytes: The body, decoded of any content coding. Work and memory are proportional to its length.
    ///   - url: Where it was found, for variables that stand for query parameters.
    ///   - imported: The master playlist's ``variables``.
    ///   - maximumSegments: The most segments, and the most variants, renditions and keys together.
    /// - Throws: ``ManifestError`` with code `tooLarge`, or `malformed`: it is no playlist, is master and media at once, or
    ///   has a segment that is not defined.
    package init(
        parsing bytes: [UInt8], at url: OriginURL? = nil, importing imported: [String: String] = [:],
        maximumSegments: Int = maximumSegments
    ) throws(ManifestError) {
        guard bytes.count <= Self.maximumBytes else {
            throw ManifestError(.tooLarge, "a playlist of \(bytes.count) bytes is larger than \(Self.maximumBytes)")
        }
        guard HLSLines.isPlaylist(bytes[...]) else {
            throw ManifestError(.malformed, "a playlist does not begin with #EXTM3U")
        }
        var parser = HLSParser(
            variables: HLSVariables(query: url?.reference.query, imported: imported), limit: maximumSegments)
        for line in HLSLines(bytes[...]) { try parser.read(line) }
        self = try parser.finished()
    }
}

/// Reads a playlist's lines, one after another.
struct HLSParser {
    private var playlist = HLSPlaylist(kind: .media)
    private var variables: HLSVariables
    private var lineNumber = 0
    /// Which tags were seen that only the one, or only the other kind has.
    private var isMaster = false
    private var isMedia = false
    private var isHLS = false
    private var substitutedBytes = 0

    // What the next URI line belongs to.
    private var variant: HLSAttributeList?
    private var duration: Double?
    private var byteRange: (length: Int64, offset: Int64?)?
    private var isDiscontinuous = false
    private var isGap = false

    // What holds until another tag says otherwise.
    private var map: HLSMap?
    private var keys: [HLSKey] = []
    /// Where the last segment with a byte range ended, if the last segment had one.
    private var previous: (uri: String, end: Int64)?

    /// How many things a playlist may list.
    private let limit: Int

    init(variables: HLSVariables, limit: Int) {
        self.variables = variables
        self.limit = limit
    }

    /// - Throws: ``ManifestError``.
    mutating func read(_ line: HLSLine) throws(ManifestError) {
        lineNumber += 1
        if line.isURI {
            try readURI(line)
        } else if let tag = line.tag {
            if line.isHLSTag { isHLS = true }
            try read(String(decoding: tag.name.dropFirst(4).prefix(32), as: UTF8.self), tag.value)
        }
    }

    consuming func finished() throws(ManifestError) -> HLSPlaylist {
        guard isHLS else {
            throw ManifestError(.malformed, "a list of files without a tag of HLS is no playlist of a stream")
        }
        guard !isMaster || !isMedia else {
            throw ManifestError(.malformed, "a playlist has tags of a master and of a media playlist")
        }
        playlist.kind = isMaster ? .master : .media
        playlist.variables = variables.values
        return playlist
    }

    private mutating func read(_ name: String, _ value: ArraySlice<UInt8>) throws(ManifestError) {
        switch name {
        case "INF":
            isMedia = true
            duration = DecimalNumbers.seconds(value.prefix { $0 != UInt8(ascii: ",") }) ?? 0
        case "-X-BYTERANGE":
            isMedia = true
            byteRange = try checked(HLSNumbers.byteRange(value), "a byte range that is not LENGTH or LENGTH@OFFSET")
        case "-X-TARGETDURATION":
            isMedia = true
            playlist.targetDuration = DecimalNumbers.seconds(value)
        case "-X-ENDLIST": playlist.isEnded = true
        case "-X-DISCONTINUITY": isDiscontinuous = true
        case "-X-GAP": isGap = true
        case "-X-MAP": try readMap(HLSAttributeList(value))
        case "-X-KEY": try readKey(HLSAttributeList(value))
        case "-X-MEDIA-SEQUENCE", "-X-PLAYLIST-TYPE", "-X-DISCONTINUITY-SEQUENCE", "-X-I-FRAMES-ONLY": isMedia = true
        case "-X-PART", "-X-PART-INF", "-X-RENDITION-REPORT":
            isMedia = true
            playlist.isLowLatency = true
        case "-X-PRELOAD-HINT":
            isMedia = true
            playlist.isLowLatency = true
            if let uri = try string("URI", of: HLSAttributeList(value)) { playlist.preloadHints.append(uri) }
            try checkCount()
        case "-X-SERVER-CONTROL":
            isMedia = true
            if HLSAttributeList(value).symbol("CAN-BLOCK-RELOAD") == "YES" { playlist.isLowLatency = true }
        case "-X-SKIP":
            isMedia = true
            playlist.isDelta = true
        case "-X-DEFINE": variables.define(HLSAttributeList(value))
        case "-X-STREAM-INF":
            isMaster = true
            variant = HLSAttributeList(value)
        case "-X-MEDIA":
            isMaster = true
            try readRendition(HLSAttributeList(value))
        case "-X-I-FRAME-STREAM-INF":
            isMaster = true
            if let uri = try string("URI", of: HLSAttributeList(value)) { playlist.iFrameStreams.append(uri) }
            try checkCount()
        case "-X-SESSION-KEY":
            isMaster = true
            if let key = try key(HLSAttributeList(value)) { playlist.sessionKeys.append(key) }
            try checkCount()
        case "-X-SESSION-DATA", "-X-CONTENT-STEERING": isMaster = true
        default: break
        }
    }

    private mutating func readURI(_ line: HLSLine) throws(ManifestError) {
        // Neither a segment nor a variant without its tag (RFC 8216 §4.3.2.1, §4.3.4.2).
        guard variant != nil || duration != nil else { return }
        let text = try checked(String(validating: line.bytes, as: UTF8.self), "a URI that is not UTF-8")
        let uri = try substituted(text)
        if let attributes = variant {
            variant = nil
            try readVariant(attributes, uri)
        } else {
            try readSegment(uri)
        }
        try checkCount()
    }

    private mutating func readVariant(_ attributes: HLSAttributeList, _ uri: String) throws(ManifestError) {
        let bandwidth = try checked(attributes.integer("BANDWIDTH"), "a variant without its bandwidth")
        var groups: [HLSRendition.Kind: String] = [:]
        if let group = try string("AUDIO", of: attributes) { groups[.audio] = group }
        if let group = try string("VIDEO", of: attributes) { groups[.video] = group }
        if let group = try string("SUBTITLES", of: attributes) { groups[.subtitles] = group }
        if let group = try string("CLOSED-CAPTIONS", of: attributes) { groups[.closedCaptions] = group }
        playlist.variants.append(
            HLSVariant(
                uri: uri, bandwidth: bandwidth, averageBandwidth: attributes.integer("AVERAGE-BANDWIDTH"),
                resolution: attributes.first("RESOLUTION").flatMap { HLSNumbers.resolution($0.value) },
                codecs: try string("CODECS", of: attributes), groups: groups))
    }

    private mutating func readSegment(_ uri: String) throws(ManifestError) {
        var range: Range<Int64>?
        if let byteRange {
            let follows = previous.flatMap { $0.uri == uri ? $0.end : nil }
            let start = try checked(
                byteRange.offset ?? follows, "a byte range without an offset that continues no other")
            range = try self.range(start, byteRange.length)
        }
        playlist.segments.append(
            HLSSegment(
                uri: uri, byteRange: range, duration: duration ?? 0, map: map, keys: keys,
                isDiscontinuous: isDiscontinuous, isGap: isGap))
        previous = range.map { (uri, $0.upperBound) }
        (duration, byteRange, isDiscontinuous, isGap) = (nil, nil, false, false)
    }

    private mutating func readMap(_ attributes: HLSAttributeList) throws(ManifestError) {
        isMedia = true
        let uri = try checked(try string("URI", of: attributes), "an initialization section without its URI")
        var range: Range<Int64>?
        if let attribute = attributes.first("BYTERANGE") {
            let parts = try checked(HLSNumbers.byteRange(attribute.value), "a byte range that is not LENGTH@OFFSET")
            range = try self.range(parts.offset ?? 0, parts.length)
        }
        map = HLSMap(uri: uri, byteRange: range)
    }

    private mutating func readKey(_ attributes: HLSAttributeList) throws(ManifestError) {
        isMedia = true
        guard let key = try key(attributes) else {
            keys = []
            return
        }
        // One for each format holds at a time; a few exist.
        keys.removeAll { $0.format == key.format }
        keys.append(key)
        guard keys.count <= 8 else {
            throw ManifestError(.tooLarge, "line \(lineNumber): more than 8 keys for a segment")
        }
    }

    /// Nil for the method `NONE`.
    private mutating func key(_ attributes: HLSAttributeList) throws(ManifestError) -> HLSKey? {
        let method = try checked(attributes.symbol("METHOD"), "a key without its method")
        if method == "NONE" { return nil }
        let uri = try checked(try string("URI", of: attributes), "a key without its URI")
        return HLSKey(method: method, uri: uri, format: try string("KEYFORMAT", of: attributes) ?? "identity")
    }

    private mutating func readRendition(_ attributes: HLSAttributeList) throws(ManifestError) {
        // Types to come are passed over, as players do.
        guard let kind = attributes.symbol("TYPE").flatMap({ HLSRendition.Kind(rawValue: $0) }) else { return }
        let groupID = try checked(try string("GROUP-ID", of: attributes), "a rendition without its group")
        playlist.renditions.append(
            HLSRendition(
                kind: kind, groupID: groupID, name: try string("NAME", of: attributes) ?? "",
                language: try string("LANGUAGE", of: attributes), isDefault: attributes.symbol("DEFAULT") == "YES",
                uri: try string("URI", of: attributes)))
        try checkCount()
    }

    /// An attribute's text, its variables substituted.
    private mutating func string(_ name: StaticString, of attributes: HLSAttributeList) throws(ManifestError) -> String?
    {
        guard let text = attributes.string(name) else { return nil }
        return try substituted(text)
    }

    private mutating func substituted(_ text: String) throws(ManifestError) -> String {
        guard HLSVariables.areReferred(in: text) else { return text }
        let result = try variables.substituted(text, limit: HLSPlaylist.maximumBytes - substitutedBytes)
        let substituted = try checked(result, "a variable that is not defined")
        substitutedBytes += substituted.utf8.count
        return substituted
    }

    private func range(_ start: Int64, _ length: Int64) throws(ManifestError) -> Range<Int64> {
        let (end, overflows) = start.addingReportingOverflow(length)
        guard length > 0, !overflows, end <= NumberLimits.byteOffset else {
            throw ManifestError(.malformed, "line \(lineNumber): a byte range of \(length) bytes from \(start)")
        }
        return start..<end
    }

    private func checked<Value>(_ value: Value?, _ complaint: String) throws(ManifestError) -> Value {
        guard let value else { throw ManifestError(.malformed, "line \(lineNumber): \(complaint)") }
        return value
    }

    private func checkCount() throws(ManifestError) {
        let count =
            playlist.segments.count + playlist.variants.count + playlist.renditions.count + playlist.iFrameStreams.count
            + playlist.sessionKeys.count + playlist.preloadHints.count
        guard count <= limit else {
            throw ManifestError(.tooLarge, "a playlist lists more than \(limit) things")
        }
    }
}
#endif

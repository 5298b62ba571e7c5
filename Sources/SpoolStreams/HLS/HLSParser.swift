import ByteRanges

extension HLSPlaylist {
    /// Parses a playlist, without retaining its text. To rewrite or filter a playlist, use ``HLSDocument``.
    ///
    /// - Parameters:
    ///   - bytes: The body, without any content coding. Time and memory are proportional to the length of the body.
    ///   - url: The URL of the playlist, for variables that refer to query parameters.
    ///   - imported: The ``variables`` of the master playlist.
    ///   - maximumSegments: The maximum total number of segments, variants, renditions and keys.
    /// - Throws: ``ManifestError`` with code `tooLarge` or `malformed`. For example, a playlist is malformed if its
    ///   first line is not `#EXTM3U`, or if it contains no HLS tags. It is also malformed if it contains an invalid
    ///   byte range, or tags of both a master and a media playlist.
    package init(
        parsing bytes: [UInt8], at url: OriginURL? = nil, importing imported: [String: String] = [:],
        maximumSegments: Int = maximumSegments
    ) throws(ManifestError) {
        var parser = HLSParser(
            HLSVariables(query: url?.reference.query, imported: imported), maximumSegments: maximumSegments)
        try parser.read(bytes)
        switch parser.playlist {
        case .success(let playlist): self = playlist
        case .failure(let error): throw error
        }
    }
}

/// A parser that reads the lines of a playlist once, for ``HLSDocument`` and ``HLSPlaylist``.
struct HLSParser {
    private(set) var references: [HLSDocument.Reference] = []
    private(set) var definitions: [HLSDefinition] = []
    private(set) var variants: [HLSDocument.Entry] = []
    private(set) var renditions: [HLSDocument.Entry] = []
    private(set) var iFrameStreams: [HLSDocument.Entry] = []
    /// The ranges of the lines for content steering.
    private(set) var steering: [Range<Int>] = []
    /// The variant whose URI line has not been read yet, and the position at which its remaining lines start.
    private var openVariant: (entry: HLSDocument.Entry, start: Int)?
    private var contents: HLSContentsReader
    private var fault: ManifestError?
    private let maximumReferences: Int

    init(
        _ variables: HLSVariables, maximumReferences: Int = HLSDocument.maximumReferences,
        maximumSegments: Int = HLSPlaylist.maximumSegments
    ) {
        self.maximumReferences = maximumReferences
        contents = HLSContentsReader(variables, limit: maximumSegments)
    }

    /// The contents, or the first error in them.
    var playlist: Result<HLSPlaylist, ManifestError> {
        if let fault { return .failure(fault) }
        do throws(ManifestError) { return .success(try contents.finished()) } catch { return .failure(error) }
    }

    /// Reads all lines. Unknown tags and attributes are ignored.
    ///
    /// - Throws: ``ManifestError`` with code `tooLarge`, or `malformed` if the first line is not `#EXTM3U`.
    mutating func read(_ bytes: [UInt8]) throws(ManifestError) {
        guard bytes.count <= HLSPlaylist.maximumBytes else {
            throw ManifestError(
                .tooLarge, "the playlist has \(bytes.count) bytes (limit: \(HLSPlaylist.maximumBytes) bytes)")
        }
        guard HLSLines.isPlaylist(bytes[...]) else {
            throw ManifestError(.malformed, "the playlist does not start with #EXTM3U")
        }
        for line in HLSLines(bytes[...]) { try read(line) }
    }

    private mutating func read(_ line: HLSLine) throws(ManifestError) {
        if line.isURI {
            try addReference(line.bytes.indices)
            endVariant(line)
            readContents { contents throws(ManifestError) in try contents.readURI(line.bytes) }
        } else if let (name, value) = line.tag, let tag = HLSTag(name) {
            let attributes = tag.hasAttributes ? HLSAttributeList(value) : nil
            if let attributes { try read(tag, attributes, line) }
            if tag == .prefetch { try addReference(value.indices) }
            readContents { contents throws(ManifestError) in try contents.read(tag, value, attributes) }
        }
        if line.isHLSTag { contents.isHLS = true }
        contents.lineNumber += 1
    }

    /// Calls `read`, unless an error in the contents has already been found.
    private mutating func readContents(_ read: (inout HLSContentsReader) throws(ManifestError) -> Void) {
        guard fault == nil else { return }
        do throws(ManifestError) { try read(&contents) } catch { fault = error }
    }

    /// Reads the parts of a tag that are needed even in a playlist with errors.
    private mutating func read(
        _ tag: HLSTag, _ attributes: HLSAttributeList, _ line: HLSLine
    ) throws(ManifestError) {
        let names = tag.referenceAttributes
        if !names.isEmpty {
            for attribute in attributes.attributes where names.contains(where: attribute.isNamed) {
                try addReference(
                    attribute.value.indices, isKey: tag == .key || tag == .sessionKey,
                    isAssetList: attribute.isNamed("X-ASSET-LIST"))
            }
        }
        switch tag {
        case .define:
            if let definition = HLSDefinition(attributes) { definitions.append(definition) }
        case .contentSteering: steering.append(line.range)
        case .variant:
            // The variant is added to the list at its URI line.
            openVariant = (entry(attributes), line.range.lowerBound)
        case .rendition where attributes.symbol("TYPE").flatMap(HLSRendition.Kind.init(rawValue:)) != nil:
            renditions.append(HLSDocument.Entry(lines: [line.range]))
            excludeFromVariant(line)
        case .iFrameStream where attributes.first("URI") != nil:
            var entry = entry(attributes)
            entry.lines = [line.range]
            iFrameStreams.append(entry)
            excludeFromVariant(line)
        default: break
        }
    }

    private func entry(_ attributes: HLSAttributeList) -> HLSDocument.Entry {
        let hasBitRate = attributes.first("BANDWIDTH") != nil
        let hasVideo = attributes.first("RESOLUTION") != nil || attributes.first("VIDEO") != nil
        return HLSDocument.Entry(
            lines: [], bitRate: attributes.bitRate("BANDWIDTH") ?? (hasBitRate ? .max : 0),
            hasVideo: hasVideo || !HLSVariant.areAudioOnly(codecs: attributes.string("CODECS")))
    }

    /// Completes the entry of the open variant at its URI line.
    private mutating func endVariant(_ line: HLSLine) {
        excludeFromVariant(line)
        guard var (entry, _) = openVariant.take() else { return }
        entry.lines.append(line.range)
        variants.append(entry)
    }

    /// Excludes a line from the lines of the open variant.
    private mutating func excludeFromVariant(_ line: HLSLine) {
        guard let start = openVariant?.start else { return }
        if start < line.range.lowerBound { openVariant?.entry.lines.append(start..<line.range.lowerBound) }
        openVariant?.start = line.range.upperBound
    }

    private mutating func addReference(
        _ place: Range<Int>, isKey: Bool = false, isAssetList: Bool = false
    ) throws(ManifestError) {
        guard references.count < maximumReferences else {
            throw ManifestError(.tooLarge, "the playlist has more than \(maximumReferences) references")
        }
        references.append(
            HLSDocument.Reference(
                place: place, isKey: isKey, isAssetList: isAssetList, definitionCount: definitions.count))
    }
}

/// A reader of a playlist's contents that follows RFC 8216 and stops at the first error.
private struct HLSContentsReader {
    private var playlist = HLSPlaylist(kind: .media)
    private var variables: HLSVariables
    var lineNumber = 1
    /// Whether the playlist contains a tag that only HLS uses. Tags that occur in only one kind of playlist set
    /// `isMaster` or `isMedia`.
    var isHLS = false
    private var isMaster = false
    private var isMedia = false
    private var substitutedBytes = 0

    // The tags that apply to the next URI line.
    private var variant: HLSAttributeList?
    private var duration: Double?
    private var byteRange: (length: Int64, offset: Int64?)?
    private var isDiscontinuous = false
    private var isGap = false

    // The tags that apply until the next tag of the same kind.
    private var map: HLSMap?
    private var keys: [HLSKey] = []
    /// The URI and the end of the previous segment, if it has a byte range.
    private var previous: (uri: String, end: Int64)?

    /// The maximum number of entries in a playlist.
    private let limit: Int

    init(_ variables: HLSVariables, limit: Int) {
        self.variables = variables
        self.limit = limit
    }

    func finished() throws(ManifestError) -> HLSPlaylist {
        guard isHLS else {
            throw ManifestError(.malformed, "a list of files without HLS tags is not an HLS playlist")
        }
        guard !isMaster || !isMedia else {
            throw ManifestError(.malformed, "the playlist contains tags of both a master and a media playlist")
        }
        var playlist = playlist
        playlist.kind = isMaster ? .master : .media
        playlist.variables = variables.values
        playlist.queryVariables = variables.ofQuery
        return playlist
    }

    /// Reads a tag.
    ///
    /// - Parameter attributes: The attributes, if the tag has any.
    mutating func read(
        _ tag: HLSTag, _ value: ArraySlice<UInt8>, _ attributes: HLSAttributeList?
    ) throws(ManifestError) {
        switch tag {
        case .segment:
            isMedia = true
            duration = DecimalNumbers.seconds(value.prefix { $0 != UInt8(ascii: ",") }) ?? 0
        case .byteRange:
            isMedia = true
            byteRange = try checked(Self.byteRange(value), "invalid byte range: must be LENGTH or LENGTH@OFFSET")
        case .targetDuration:
            // Some master playlists also contain the header tags of a media playlist.
            playlist.targetDuration = DecimalNumbers.seconds(value)
        case .endList: playlist.isEnded = true
        case .discontinuity: isDiscontinuous = true
        case .gap: isGap = true
        case .mediaSequence, .playlistType, .discontinuitySequence, .iFramesOnly: break
        case .partInformation:
            isMedia = true
            playlist.isLowLatency = true
        case .skip:
            isMedia = true
            playlist.isDelta = true
        default:
            guard let attributes else { return }
            try read(tag, attributes)
        }
    }

    private mutating func read(_ tag: HLSTag, _ attributes: HLSAttributeList) throws(ManifestError) {
        switch tag {
        case .map: try readMap(attributes)
        case .key: try readKey(attributes)
        case .part, .renditionReport:
            isMedia = true
            playlist.isLowLatency = true
        case .preloadHint:
            isMedia = true
            playlist.isLowLatency = true
            if let uri = try uri(of: attributes) { playlist.preloadHints.append(uri) }
            try checkCount()
        case .serverControl:
            isMedia = true
            if attributes.symbol("CAN-BLOCK-RELOAD") == "YES" { playlist.isLowLatency = true }
        case .define:
            if let definition = HLSDefinition(attributes) { variables.define(definition) }
        case .variant:
            isMaster = true
            variant = attributes
        case .rendition:
            isMaster = true
            try readRendition(attributes)
        case .iFrameStream:
            isMaster = true
            if let uri = try uri(of: attributes) { playlist.iFrameStreams.append(uri) }
            try checkCount()
        case .sessionKey:
            isMaster = true
            if let key = try key(attributes) { playlist.sessionKeys.append(key) }
            try checkCount()
        case .sessionData, .contentSteering: isMaster = true
        default: break
        }
    }

    mutating func readURI(_ bytes: ArraySlice<UInt8>) throws(ManifestError) {
        // A URI without a preceding tag is neither a segment nor a variant (RFC 8216 §4.3.2.1, §4.3.4.2).
        guard variant != nil || duration != nil else { return }
        let uri = try substituted(try checked(String(validating: bytes, as: UTF8.self), "a URI is not UTF-8"))
        if let attributes = variant.take() {
            try readVariant(attributes, uri)
        } else {
            try readSegment(uri)
        }
        try checkCount()
    }

    private mutating func readVariant(_ attributes: HLSAttributeList, _ uri: String) throws(ManifestError) {
        // RFC 8216 requires `BANDWIDTH`, but players do not.
        let bandwidth = attributes.bitRate("BANDWIDTH") ?? 0
        var groups: [HLSRendition.Kind: String] = [:]
        if let group = try string("AUDIO", of: attributes) { groups[.audio] = group }
        if let group = try string("VIDEO", of: attributes) { groups[.video] = group }
        if let group = try string("SUBTITLES", of: attributes) { groups[.subtitles] = group }
        if let group = try string("CLOSED-CAPTIONS", of: attributes) { groups[.closedCaptions] = group }
        playlist.variants.append(
            HLSVariant(
                uri: uri, bandwidth: bandwidth, averageBandwidth: attributes.integer("AVERAGE-BANDWIDTH"),
                resolution: attributes.first("RESOLUTION").flatMap { Self.resolution($0.value) },
                codecs: try string("CODECS", of: attributes), groups: groups))
    }

    private mutating func readSegment(_ uri: String) throws(ManifestError) {
        var range: Range<Int64>?
        if let byteRange {
            let next = previous.flatMap { $0.uri == uri ? $0.end : nil }
            let start = try checked(
                byteRange.offset ?? next,
                "invalid byte range: without an offset, it must follow a byte range of the same file")
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
        let uri = try checked(try uri(of: attributes), "an initialization section has no URI")
        var range: Range<Int64>?
        if let attribute = attributes.first("BYTERANGE") {
            let parts = try checked(
                Self.byteRange(attribute.value), "invalid byte range: must be LENGTH or LENGTH@OFFSET")
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
        // A segment has one key for each format, and only a few formats exist.
        keys.removeAll { $0.format == key.format }
        keys.append(key)
        guard keys.count <= 8 else {
            throw ManifestError(.tooLarge, "line \(lineNumber): a segment has more than 8 keys")
        }
    }

    /// Reads a key, or returns `nil` for the method `NONE`.
    private mutating func key(_ attributes: HLSAttributeList) throws(ManifestError) -> HLSKey? {
        let method = try checked(attributes.symbol("METHOD"), "a key has no method")
        if method == "NONE" { return nil }
        let uri = try checked(try uri(of: attributes), "a key has no URI")
        return HLSKey(method: method, uri: uri, format: try string("KEYFORMAT", of: attributes) ?? "identity")
    }

    private mutating func readRendition(_ attributes: HLSAttributeList) throws(ManifestError) {
        // Unknown types are ignored, as in players.
        guard let kind = attributes.symbol("TYPE").flatMap(HLSRendition.Kind.init(rawValue:)) else { return }
        let groupID = try checked(try string("GROUP-ID", of: attributes), "a rendition has no group")
        playlist.renditions.append(
            HLSRendition(
                kind: kind, groupID: groupID, name: try string("NAME", of: attributes) ?? "",
                language: try string("LANGUAGE", of: attributes), isDefault: attributes.symbol("DEFAULT") == "YES",
                uri: try uri(of: attributes)))
        try checkCount()
    }

    // MARK: Values

    /// Returns the text of an attribute, with its variables replaced by their values.
    private mutating func string(_ name: StaticString, of attributes: HLSAttributeList) throws(ManifestError) -> String?
    {
        guard let text = attributes.string(name) else { return nil }
        return try substituted(text)
    }

    private mutating func uri(of attributes: HLSAttributeList) throws(ManifestError) -> String? {
        guard let text = attributes.text("URI") else { return nil }
        return try substituted(text)
    }

    private mutating func substituted(_ text: String) throws(ManifestError) -> String {
        guard HLSVariables.mayOccur(in: text) else { return text }
        let result = try variables.substituted(text, limit: HLSPlaylist.maximumBytes - substitutedBytes)
        let substituted = try checked(result, "a variable is not defined")
        substitutedBytes += substituted.utf8.count
        return substituted
    }

    /// Parses a resolution, such as `1280x720`.
    private static func resolution(_ bytes: ArraySlice<UInt8>) -> HLSResolution? {
        let parts = bytes.split(separator: UInt8(ascii: "x"), omittingEmptySubsequences: false)
        guard parts.count == 2, let width = DecimalNumbers.integer(parts[0]),
            let height = DecimalNumbers.integer(parts[1])
        else { return nil }
        return HLSResolution(width: width, height: height)
    }

    /// Parses a byte range in the form `LENGTH` or `LENGTH@OFFSET`.
    private static func byteRange(_ bytes: ArraySlice<UInt8>) -> (length: Int64, offset: Int64?)? {
        let parts = bytes.split(separator: UInt8(ascii: "@"), maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, let length = DecimalNumbers.integer(first) else { return nil }
        guard parts.count == 2 else { return (length, nil) }
        return DecimalNumbers.integer(parts[1]).map { (length, $0) }
    }

    private func range(_ start: Int64, _ length: Int64) throws(ManifestError) -> Range<Int64> {
        let (end, overflows) = start.addingReportingOverflow(length)
        guard length > 0, !overflows, end <= NumberLimits.byteOffset else {
            throw ManifestError(
                .malformed, "line \(lineNumber): invalid byte range of \(length) bytes at offset \(start)")
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
            throw ManifestError(.tooLarge, "the playlist has more than \(limit) entries")
        }
    }
}

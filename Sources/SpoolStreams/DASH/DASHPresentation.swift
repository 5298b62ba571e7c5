import ByteRanges

/// The media of an MPD, from which a player chooses (ISO/IEC 23009-1 §5.3).
package struct DASHPresentation: Sendable {
    /// One encoding of the media in an adaptation set.
    package struct Representation: Sendable {
        var id = ""
        var bandwidth = ""
        /// The URL to which references are relative, or `nil` if it cannot be requested through the proxy.
        var base: OriginURL?
        var segments = DASHSegments()
        /// The range of the representation's element in the MPD.
        var place = 0..<0
    }

    /// Interchangeable representations of the same content.
    package struct AdaptationSet: Sendable {
        /// `video`, `audio`, `text` or an empty string.
        var kind = ""
        /// The representations, in the order of the MPD.
        package internal(set) var representations: [Representation] = []
        /// The range of the adaptation set's element in the MPD.
        var place = 0..<0
    }

    /// A time interval of the stream.
    package struct Period: Sendable {
        /// The start, in seconds, or `nil` if the MPD does not specify it.
        var start: Double?
        /// The duration, in seconds, or `nil` if the MPD does not specify it.
        var duration: Double?
        /// The adaptation sets, in the order of the MPD.
        package internal(set) var sets: [AdaptationSet] = []
    }

    /// The periods, in chronological order.
    package internal(set) var periods: [Period] = []
    /// The duration of the whole stream, in seconds, or `nil` if the MPD does not specify it.
    var duration: Double?

    /// Returns the duration of a period, in seconds, or `nil` if the MPD does not specify it.
    package func duration(of index: Int) -> Double? {
        if let duration = periods[index].duration { return duration }
        let start = periods[index].start ?? (index == 0 ? 0 : nil)
        guard let start else { return nil }
        let end = index + 1 < periods.count ? periods[index + 1].start : duration
        return end.map { max(0, $0 - start) }
    }
}

// MARK: Files

extension DASHPresentation {
    /// The maximum bit rate at which players start on a connection of unknown speed, in bits per second.
    private static let firstBandwidth: Int64 = 1_000_000
    /// The maximum number of files in a download. It is enough for a day of one-second segments in eleven adaptation
    /// sets.
    private static let fileLimit = 1_000_000

    /// Returns the files that playback needs, without duplicates.
    ///
    /// - Parameters:
    ///   - seconds: The length of the start to download, in seconds. If it is `nil`, the result contains all periods,
    ///     in the best quality of all video, audio and text. A start contains the first video and the first audio of
    ///     the first period, with at least one segment of each. Its quality is the best one up to 1 Mbit/s, or the
    ///     lowest one if every quality exceeds that bit rate.
    ///   - url: The URL of the MPD.
    /// - Throws: ``ManifestError`` with one of these codes:
    ///   - `live` if the MPD does not specify the number of segments
    ///   - `address` if a file cannot be requested
    ///   - `malformed` if there is no media
    ///   - `tooLarge` if there are too many files
    func files(seconds: Double?, at url: OriginURL) throws(ManifestError) -> [StreamFile] {
        var list: [StreamFile] = []
        var bytes = 0
        for (index, period) in periods.enumerated().prefix(seconds == nil ? .max : 1) {
            for set in seconds == nil ? period.sets : Self.start(of: period.sets) {
                guard let representation = Self.choice(of: set.representations, isStart: seconds != nil) else {
                    continue
                }
                var files = files(of: representation, until: seconds, period: duration(of: index), url)
                while let file = try files.next() {
                    bytes += file.url.target.utf8.count
                    guard list.count < Self.fileLimit, bytes <= ManifestError.maximumURLBytes else {
                        throw ManifestError(
                            .tooLarge,
                            "the MPD at \(url.nameForMessages) needs more than \(Self.fileLimit) files, or their URLs "
                                + "exceed \(ManifestError.maximumURLBytes >> 20) MiB")
                    }
                    list.append(file)
                }
            }
        }
        guard list.contains(where: \.isSegment) else {
            throw ManifestError(.malformed, "the MPD at \(url.nameForMessages) has no media")
        }
        var seen: Set<StreamFile> = []
        return list.filter { seen.insert($0).inserted }
    }

    private static func start(of sets: [AdaptationSet]) -> [AdaptationSet] {
        let known = ["video", "audio"].compactMap { kind in sets.first { $0.kind == kind } }
        return known.isEmpty ? Array(sets.prefix(2)) : known
    }

    private static func choice(of representations: [Representation], isStart: Bool) -> Representation? {
        let sorted = representations.map { (Int64($0.bandwidth) ?? 0, $0) }.sorted { $0.0 < $1.0 }
        guard isStart else { return sorted.last?.1 }
        return (sorted.last { $0.0 <= firstBandwidth } ?? sorted.first)?.1
    }

    /// Returns the files of one representation.
    ///
    /// - Parameters:
    ///   - seconds: See ``files(seconds:at:)``.
    ///   - period: The duration of the period, in seconds, or `nil` if the MPD does not specify it.
    ///   - url: The URL of the MPD.
    package func files(
        of representation: Representation, until seconds: Double?, period: Double?, _ url: OriginURL
    ) -> Files {
        Files(representation: representation, seconds: seconds, period: period, url: url)
    }

    /// The files of one representation: the initialization section, then the segments.
    ///
    /// The files are enumerated one at a time, because an MPD of a few kilobytes may describe billions of them.
    package struct Files {
        private let representation: Representation
        private let base: ReferenceRewriter?
        private let seconds: Double?
        private let url: OriginURL
        private var places: DASHSegments.Places
        private var isStarted = false
        private var count = 0

        fileprivate init(representation: Representation, seconds: Double?, period: Double?, url: OriginURL) {
            self.representation = representation
            self.seconds = seconds
            self.url = url
            base = representation.base.map { ReferenceRewriter(finalURL: $0) }
            places = representation.segments.places(until: seconds, period: period)
        }

        /// Returns the next file, or `nil` after the last.
        ///
        /// - Throws: ``ManifestError``, in the same cases as ``files(seconds:at:)``.
        package mutating func next() throws(ManifestError) -> StreamFile? {
            let segments = representation.segments
            if !isStarted {
                isStarted = true
                if let template = segments.initialization {
                    return try file(filled(template, nil), nil, isSegment: false)
                }
                if let reference = segments.initializationReference {
                    return try file(reference, segments.initializationRange, isSegment: false)
                }
            }
            defer { count += 1 }
            if let list = segments.list {
                // If there are no times, all segments of a list have the duration that the list specifies, if any.
                let length = segments.duration.map { Double($0) / Double(segments.timescale) } ?? 0
                if let seconds, count > 0, length <= 0 || Double(count) * length >= seconds { return nil }
                guard count < list.count else { return nil }
                return try file(list[count].reference, list[count].byteRange, isSegment: true)
            }
            if let template = segments.media {
                guard let place = try places.next() else { return nil }
                return try file(filled(template, place), nil, isSegment: true)
            }
            guard count == 0 else { return nil }
            return DASHPresentation.oneFile(try file("", nil, isSegment: true), representation, seconds)
        }

        private func file(
            _ reference: String?, _ range: Range<Int64>?, isSegment: Bool
        ) throws(ManifestError) -> StreamFile {
            guard let target = reference.flatMap({ base?.url(of: $0) }) else {
                throw ManifestError(
                    .address, "a file in the MPD at \(url.nameForMessages) cannot be requested")
            }
            return StreamFile(url: target, byteRange: range, isSegment: isSegment)
        }

        private func filled(_ template: String, _ place: DASHSegments.Place?) -> String? {
            DASHSegments.fill(template, id: representation.id, bandwidth: representation.bandwidth, place)
        }
    }

    /// Returns the only file of a representation. If `seconds` is not `nil`, the byte range of the file is an estimate
    /// for the first `seconds` of the media.
    private static func oneFile(
        _ file: StreamFile, _ representation: Representation, _ seconds: Double?
    ) -> StreamFile {
        guard let seconds else { return file }
        let head = representation.segments.indexRange?.upperBound ?? 65_536
        let bitRate = DecimalNumbers.integer(ArraySlice(representation.bandwidth.utf8)) ?? 0
        // A player downloads whole segments, which last several seconds each.
        let media = Int64(saturating: min(Double(min(bitRate, 1_000_000_000)) / 8 * max(4, seconds) * 1.25, 1e12))
            .adding(65_536)
        var file = file
        file.byteRange = 0..<min(head, 1 << 40).adding(media)
        file.isEstimate = true
        return file
    }
}

#if Proxy
extension DASHPresentation {
    /// What players that know nothing of the line begin with at most, in bits a second.
    private static let firstBandwidth: Int64 = 1_000_000
    /// The maximum number of files in a download. It allows a day of one-second segments in eleven adaptation sets.
    private static let fileLimit = 1_000_000

    /// What a play needs, each thing once.
    ///
    /// - Parameters:
    ///   - seconds: How much of the first period: of its first picture and its first sound, in the best quality of at most
    ///     1 Mbit/s, else in the least, the segments that begin before then, at least one. Nil: all periods, of every
    ///     picture, sound and text the best quality.
    ///   - url: Where the MPD was found.
    /// - Throws: ``ManifestError``: `live` where nothing says how many segments there are, `address` for what can't be asked
    ///   for, `malformed` where it has no media, `tooLarge`.
    func files(seconds: Double?, at url: OriginURL) throws(ManifestError) -> [StreamFile] {
        var list: [StreamFile] = []
        for (index, period) in periods.enumerated().prefix(seconds == nil ? .max : 1) {
            for set in seconds == nil ? period.sets : Self.begun(of: period.sets) {
                guard let representation = Self.choice(of: set.representations, isStart: seconds != nil) else {
                    continue
                }
                var files = files(of: representation, until: seconds, period: duration(of: index), url)
                while let file = try files.next() {
                    guard list.count < Self.fileLimit else {
                        throw ManifestError(
                            .tooLarge, "the MPD at \(url.nameForMessages) needs more than \(Self.fileLimit) files")
                    }
                    list.append(file)
                }
            }
        }
        guard list.contains(where: \.isSegment) else {
            throw ManifestError(.malformed, "the MPD at \(url.nameForMessages) names no media")
        }
        var seen: Set<StreamFile> = []
        return list.filter { seen.insert($0).inserted }
    }

    private static func begun(of sets: [AdaptationSet]) -> [AdaptationSet] {
        let known = ["video", "audio"].compactMap { kind in sets.first { $0.kind == kind } }
        return known.isEmpty ? Array(sets.prefix(2)) : known
    }

    private static func choice(of representations: [Representation], isStart: Bool) -> Representation? {
        let sorted = representations.map { (Int64($0.bandwidth) ?? 0, $0) }.sorted { $0.0 < $1.0 }
        guard isStart else { return sorted.last?.1 }
        return (sorted.last { $0.0 <= firstBandwidth } ?? sorted.first)?.1
    }

    /// The files that one representation needs.
    ///
    /// - Parameters:
    ///   - seconds: As for ``files(seconds:at:)``.
    ///   - period: The length of the period, in seconds; `nil` if the MPD does not state it.
    ///   - url: The address of the MPD.
    func files(of representation: Representation, until seconds: Double?, period: Double?, _ url: OriginURL) -> Files {
        Files(representation: representation, seconds: seconds, period: period, url: url)
    }

    /// Enumerates the files of one representation: the initialization section, then the segments.
    struct Files {
        private let representation: Representation
        private let seconds: Double?
        private let url: OriginURL
        private var places: DASHSegments.Places
        private var isBegun = false
        private var count = 0

        init(representation: Representation, seconds: Double?, period: Double?, url: OriginURL) {
            self.representation = representation
            self.seconds = seconds
            self.url = url
            places = representation.segments.places(until: seconds, period: period)
        }

        /// Returns the next file, or `nil` after the last.
        ///
        /// - Throws: ``ManifestError``, in the same cases as ``files(seconds:at:)``.
        mutating func next() throws(ManifestError) -> StreamFile? {
            let segments = representation.segments
            if !isBegun {
                isBegun = true
                if let template = segments.initialization {
                    return try file(filled(template, nil), nil, isSegment: false)
                }
                if let reference = segments.initializationReference {
                    return try file(reference, segments.initializationRange, isSegment: false)
                }
            }
            defer { count += 1 }
            if let list = segments.list {
                // Without times, all segments of a list have the same duration, if it states one.
                let length = segments.duration.map { Double($0) / Double(segments.timescale) } ?? 0
                if let seconds, count > 0, length <= 0 || Double(count) * length >= seconds { return nil }
                guard count < list.count else { return nil }
                return try file(list[count].reference, list[count].byteRange, isSegment: true)
            }
            if let template = segments.media {
                return try places.next().map { place throws(ManifestError) in
                    try file(filled(template, place), nil, isSegment: true)
                }
            }
            guard count == 0 else { return nil }
            return DASHPresentation.oneFile(try file("", nil, isSegment: true), representation, seconds)
        }

        private func file(
            _ reference: String?, _ range: Range<Int64>?, isSegment: Bool
        ) throws(ManifestError) -> StreamFile {
            guard let target = reference.flatMap({ representation.base?.url(of: $0) }) else {
                throw ManifestError(
                    .address, "something that the MPD at \(url.nameForMessages) names can't be asked for")
            }
            return StreamFile(url: target, byteRange: range, isSegment: isSegment)
        }

        private func filled(_ template: String, _ place: DASHSegments.Place?) -> String? {
            DASHSegments.fill(template, id: representation.id, bandwidth: representation.bandwidth, place)
        }
    }

    /// A representation that is one file: all of it, or its index and about as much as so many seconds have.
    fileprivate static func oneFile(
        _ file: StreamFile, _ representation: Representation, _ seconds: Double?
    ) -> StreamFile {
        guard let seconds else { return file }
        let head = representation.segments.indexRange?.upperBound ?? 65_536
        let rate = min(Double(Int64(representation.bandwidth) ?? 0), 1e9) / 8
        // A segment is brought whole, and they are some seconds long.
        let media = Int64(min(rate * max(seconds, 4) * 1.25, 1e12)) + 65_536
        var file = file
        file.byteRange = 0..<min(head, 1 << 40) + media
        file.isEstimate = true
        return file
    }
}
#endif

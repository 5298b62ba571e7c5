#if Proxy
extension DASHPresentation {
    /// What players that know nothing of the line begin with at most, in bits a second.
    private static let firstBandwidth: Int64 = 1_000_000

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
                list += try files(of: representation, until: seconds, period: duration(of: index), url)
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

    /// What one representation needs, as ``files(seconds:at:)``.
    func files(
        of representation: Representation, until seconds: Double?, period: Double?, _ url: OriginURL
    ) throws(ManifestError) -> [StreamFile] {
        let segments = representation.segments
        func file(_ reference: String?, _ range: Range<Int64>?, isSegment: Bool) throws(ManifestError) -> StreamFile {
            guard let target = reference.flatMap({ representation.base?.url(of: $0) }) else {
                throw ManifestError(
                    .address, "something that the MPD at \(url.nameForMessages) names can't be asked for")
            }
            return StreamFile(url: target, byteRange: range, isSegment: isSegment)
        }
        func filled(_ template: String, _ place: DASHSegments.Place?) -> String? {
            DASHSegments.fill(template, id: representation.id, bandwidth: representation.bandwidth, place)
        }
        var files: [StreamFile] = []
        if let template = segments.initialization {
            files.append(try file(filled(template, nil), nil, isSegment: false))
        } else if let reference = segments.initializationReference {
            files.append(try file(reference, segments.initializationRange, isSegment: false))
        }
        if let list = segments.list {
            // Without times all of a list is one stretch: a duration each, if it says one.
            let length = segments.duration.map { Double($0) / Double(segments.timescale) } ?? 0
            for (index, listed) in list.enumerated() {
                if let seconds, index > 0, length <= 0 || Double(index) * length >= seconds { break }
                files.append(try file(listed.reference, listed.byteRange, isSegment: true))
            }
        } else if let template = segments.media {
            for place in try segments.places(until: seconds, period: period) {
                files.append(try file(filled(template, place), nil, isSegment: true))
            }
        } else {
            files.append(try Self.oneFile(file("", nil, isSegment: true), representation, seconds))
        }
        return files
    }

    /// A representation that is one file: all of it, or its index and about as much as so many seconds have.
    private static func oneFile(
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

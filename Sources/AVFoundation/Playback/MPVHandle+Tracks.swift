extension MPVHandle {
    /// The tracks that the demuxer has found. Cover art is none, as with Apple's, where it is metadata.
    func tracks() -> [TrackValues] {
        let count = Int(number("track-list/count") ?? 0)
        var tracks: [TrackValues] = (0..<max(0, count)).compactMap { index in
            let entry = "track-list/\(index)/"
            guard let type = text(entry + "type").flatMap(Self.mediaType), flag(entry + "albumart") != true else {
                return nil
            }
            return TrackValues(
                trackID: CMPersistentTrackID(index + 1), mediaType: type,
                width: number(entry + "demux-w") ?? 0, height: number(entry + "demux-h") ?? 0,
                bitsPerSecond: Float(number(entry + "demux-bitrate") ?? 0),
                framesPerSecond: Float(number(entry + "demux-fps") ?? 0),
                languageCode: text(entry + "lang"), isEnabled: flag(entry + "default") ?? true)
        }
        // libmpv knows the rates of sound only: what is left of the file's is a single picture's.
        let unknown = tracks.indices.filter { tracks[$0].mediaType != .subtitle && tracks[$0].bitsPerSecond == 0 }
        if unknown.count == 1, let index = unknown.first, let bytes = number("file-size"),
            let seconds = number("duration"),
            seconds > 0
        {
            tracks[index].bitsPerSecond = max(0, Float(bytes * 8 / seconds) - tracks.map(\.bitsPerSecond).reduce(0, +))
        }
        return tracks
    }

    private static func mediaType(_ name: String) -> AVMediaType? {
        switch name {
        case "video": .video
        case "audio": .audio
        case "sub": .subtitle
        default: nil
        }
    }
}

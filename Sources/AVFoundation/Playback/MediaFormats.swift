/// What libmpv may take bytes for, and what else it may open because of them.
///
/// libmpv opens playlists, edit lists and scripts of many kinds by looking at the bytes, and then whatever file or URL
/// they name, also from a film that comes from a stranger. Here it is told to see containers of media and nothing else,
/// and libavformat to open nothing further; HLS, over HTTP only, and only what is on HTTP.
enum MediaFormats {
    /// libavformat's demuxers that read one file and name no other.
    static let containers = [
        "mov", "mp3", "aac", "wav", "w64", "aiff", "caf", "flac", "ogg", "matroska", "mpegts", "mpeg", "avi", "ac3",
        "eac3", "au", "amr",
    ]

    /// - Parameters:
    ///   - mayReachNetwork: whether it plays an `http(s)` URL by itself.
    ///   - demuxer: further options of libavformat's demuxers.
    static func options(mayReachNetwork: Bool, demuxer: [String]) -> [(name: String, value: String)] {
        let formats = containers + (mayReachNetwork ? ["hls"] : [])
        // `data` opens nothing; an empty list would mean libavformat's own.
        let protocols = mayReachNetwork ? ["http", "https", "httpproxy", "tcp", "tls", "crypto", "data"] : ["data"]
        // Else it waits for the head of the next segment before it reads one that is there, and takes a live stream that
        // brings nothing new for a while to have ended: after 3 to 100 looks, by its version.
        let segments =
            mayReachNetwork ? ["http_multiple=0", "max_reload=\(Int32.max)", "m3u8_hold_counters=\(Int32.max)"] : []
        let lists = [
            "protocol_whitelist=[\(protocols.joined(separator: ","))]",
            "format_whitelist=[\(formats.joined(separator: ","))]",
        ]
        return [
            // libmpv's own demuxers are those of playlists, edit lists, cue sheets and archives, and one for Matroska.
            ("demuxer", "lavf"), ("demuxer-lavf-o", (demuxer + segments + lists).joined(separator: ",")),
            // The segments of HLS are references, too.
            ("access-references", mayReachNetwork ? "yes" : "no"), ("ordered-chapters", "no"),
            ("load-unsafe-playlists", "no"), ("autoload-files", "no"), ("cover-art-auto", "no"),
        ]
    }
}

import SpoolAVFoundation

/// Sample media. The servers belong to third parties. They may be slow, change or disappear, and must not be used for
/// load tests.
enum Samples {
    /// Videos and streams. © Blender Foundation, CC BY 3.0; Apple's test videos.
    static let films = titles([
        ("Big Buck Bunny", "https://download.blender.org/peach/bigbuckbunny_movies/BigBuckBunny_320x180.mp4"),
        ("Sintel, trailer", "https://download.blender.org/durian/trailer/sintel_trailer-480p.mp4"),
        ("Tears of Steel", "https://download.blender.org/demo/movies/ToS/tears_of_steel_720p.mov"),
        (
            "BipBop (HLS)",
            "https://devstreaming-cdn.apple.com/videos/streaming/examples/img_bipbop_adv_example_ts/master.m3u8"
        ),
        (
            "BipBop (HLS, fragmented MPEG-4)",
            "https://devstreaming-cdn.apple.com/videos/streaming/examples/img_bipbop_adv_example_fmp4/master.m3u8"
        ),
    ])

    /// “Alice's Adventures in Wonderland”, read by volunteers of LibriVox; in the public domain.
    static let readings = titles(
        (1...3).map { chapter in
            (
                "Alice, chapter \(chapter)",
                "https://archive.org/download/alice_in_wonderland_librivox/wonderland_ch_0\(chapter).mp3"
            )
        })

    private static func titles(_ lines: [(name: String, address: String)]) -> [Title] {
        lines.compactMap { line in
            URL(string: line.address).map { Title(name: line.name, source: MediaSource(url: $0)) }
        }
    }
}

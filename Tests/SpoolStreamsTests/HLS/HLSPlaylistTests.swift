import Testing

@testable import SpoolStreams

@Suite struct HLSPlaylistTests {
    private func playlist(_ text: String, at url: String = "http://h/l.m3u8") throws -> HLSPlaylist {
        try HLSPlaylist(parsing: Array(text.utf8), at: OriginURL(url))
    }

    @Test func `The simple media playlist of RFC 8216 §8.1 is parsed`() throws {
        let playlist = try playlist(
            """
            #EXTM3U
            #EXT-X-TARGETDURATION:10
            #EXT-X-VERSION:3
            #EXTINF:9.009,
            http://media.example.com/first.ts
            #EXTINF:9.009,
            http://media.example.com/second.ts
            #EXTINF:3.003,
            http://media.example.com/third.ts
            #EXT-X-ENDLIST
            """)
        #expect(playlist.kind == .media && playlist.isEnded && playlist.targetDuration == 10)
        #expect(playlist.segments.map(\.duration) == [9.009, 9.009, 3.003])
        #expect(playlist.lifetime == .unchanging)
        #expect(
            try playlist.downloads(at: OriginURL("http://h/")).map(\.url.description)
                == ["first", "second", "third"].map { "http://media.example.com/\($0).ts" })
    }

    @Test func `The live playlist of RFC 8216 §8.3 is parsed, and is fresh for half its target duration`() throws {
        let playlist = try playlist(
            """
            #EXTM3U
            #EXT-X-VERSION:3
            #EXT-X-MEDIA-SEQUENCE:7794
            #EXT-X-TARGETDURATION:15
            #EXT-X-KEY:METHOD=AES-128,URI="https://priv.example.com/key.php?r=52"
            #EXTINF:2.833,
            http://media.example.com/fileSequence52-A.ts
            #EXTINF:15.0,
            http://media.example.com/fileSequence52-B.ts
            #EXT-X-KEY:METHOD=AES-128,URI="https://priv.example.com/key.php?r=53"
            #EXTINF:15.0,
            http://media.example.com/fileSequence53-A.ts
            """)
        #expect(playlist.lifetime == .seconds(7.5))
        #expect(playlist.segments.map { $0.keys.map(\.uri.last) } == [["2"], ["2"], ["3"]])
        let error = #expect(throws: ManifestError.self) { try playlist.downloads(at: OriginURL("http://h/")) }
        #expect(error?.code == .live)
    }

    @Test func `The master playlist with alternative audio of RFC 8216 §8.6 is parsed`() throws {
        let playlist = try playlist(
            """
            #EXTM3U
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="aac",NAME="English",DEFAULT=YES,AUTOSELECT=YES,LANGUAGE="en",URI="main/english-audio.m3u8"
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="aac",NAME="Deutsch",DEFAULT=NO,AUTOSELECT=YES,LANGUAGE="de",URI="main/german-audio.m3u8"
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="other",NAME="Commentary",URI="commentary/audio-only.m3u8"
            #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="text",NAME="English",URI="text.m3u8"
            #EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID="cc",NAME="CC",INSTREAM-ID="CC1"
            #EXT-X-MEDIA:TYPE=LATER,GROUP-ID="x",NAME="y",URI="z"
            #EXT-X-STREAM-INF:BANDWIDTH=1280000,CODECS="avc1,mp4a",AUDIO="aac",RESOLUTION=640x360
            low/video-only.m3u8
            #EXT-X-STREAM-INF:BANDWIDTH=7680000,AVERAGE-BANDWIDTH=6000000,AUDIO="aac",SUBTITLES="text",RESOLUTION=1920x1080
            hi/video-only.m3u8
            #EXT-X-STREAM-INF:BANDWIDTH=65000,CODECS="mp4a.40.5",AUDIO="aac"
            main/english-audio.m3u8
            #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=86000,URI="low/iframe.m3u8"
            #EXT-X-SESSION-KEY:METHOD=SAMPLE-AES,URI="skd://k",KEYFORMAT="com.apple.streamingkeydelivery"
            #EXT-X-SESSION-KEY:METHOD=AES-128,URI="k.bin"
            """)
        #expect(playlist.kind == .master && playlist.lifetime == .unstated)
        #expect(playlist.variants.map(\.bandwidth) == [1_280_000, 7_680_000, 65_000])
        #expect(playlist.variants[0].codecs == "avc1,mp4a" && playlist.variants[1].averageBandwidth == 6_000_000)
        #expect(playlist.renditions.map(\.isDefault) == [true, false, false, false, false])
        #expect(playlist.iFrameStreams == ["low/iframe.m3u8"])
        let url = try OriginURL("http://h/p/master.m3u8")
        let names = { (selection: HLSVariantSelection) in
            try playlist.playlists(for: selection, at: url).map { $0.description.dropFirst("http://h/p/".count) }
        }
        let audio: [Substring] = ["main/english-audio.m3u8", "main/german-audio.m3u8"]
        #expect(try names(.highest) == ["hi/video-only.m3u8"] + audio + ["text.m3u8"])
        #expect(try names(.lowest) == audio)
        #expect(try names(.bandwidth(atMost: 2_000_000)) == ["low/video-only.m3u8"] + audio)
        #expect(try names(.bandwidth(atMost: 1)) == ["low/video-only.m3u8"] + audio)
        #expect(try names(.resolution(atMost: .init(width: 720, height: 1280))) == ["low/video-only.m3u8"] + audio)
        #expect(try names(.resolution(atMost: .init(width: 1, height: 1))) == ["low/video-only.m3u8"] + audio)
        #expect(try playlist.downloads(at: url).map(\.url.description) == ["http://h/p/k.bin"])
    }

    @Test func `A master playlist that ffmpeg wrote is parsed`() throws {
        let playlist = try playlist(
            """
            #EXTM3U
            #EXT-X-VERSION:3
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="group_aud",NAME="audio_1",DEFAULT=YES,LANGUAGE="en",URI="v1.m3u8"
            #EXT-X-STREAM-INF:BANDWIDTH=105221,RESOLUTION=160x90,AUDIO="group_aud"
            v0.m3u8

            #EXT-X-STREAM-INF:BANDWIDTH=76375,CODECS="mp4a.40.2",AUDIO="group_aud"
            v1.m3u8

            """)
        #expect(
            try playlist.playlists(for: .highest, at: OriginURL("http://h/m.m3u8")).map(\.target) == [
                "/v0.m3u8", "/v1.m3u8",
            ])
    }

    @Test func `Byte ranges, initialization sections and keys are downloaded once each, in order`() throws {
        let playlist = try playlist(
            """
            #EXTM3U
            #EXT-X-TARGETDURATION:2
            #EXT-X-MAP:URI="f.mp4",BYTERANGE="1375@0"
            #EXT-X-KEY:METHOD=AES-128,URI="k",IV=0x00
            #EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://k",KEYFORMAT="com.apple.streamingkeydelivery"
            #EXTINF:2.0,
            #EXT-X-BYTERANGE:23625@1375
            f.mp4
            #EXTINF:2,title, with a comma
            #EXT-X-BYTERANGE:26537
            f.mp4
            #EXT-X-DISCONTINUITY
            #EXT-X-KEY:METHOD=NONE
            #EXT-X-MAP:URI="/g.mp4"
            #EXTINF:2,
            g.ts
            #EXT-X-GAP
            #EXTINF:2,
            gone.ts
            #EXT-X-ENDLIST
            """)
        #expect(playlist.segments.map(\.isDiscontinuous) == [false, false, true, false])
        #expect(playlist.segments.map(\.keys.count) == [2, 2, 0, 0])
        let downloads = try playlist.downloads(at: OriginURL("http://h/p/l.m3u8"))
        #expect(downloads.map(\.url.target) == ["/p/k", "/p/f.mp4", "/p/f.mp4", "/p/f.mp4", "/g.mp4", "/p/g.ts"])
        #expect(downloads.map(\.byteRange) == [nil, 0..<1375, 1375..<25000, 25000..<51537, nil, nil])
    }

    @Test(arguments: [
        "#EXT-X-BYTERANGE:10\na.ts", "#EXT-X-BYTERANGE:0@5\na.ts", "#EXT-X-BYTERANGE:x\na.ts",
        "#EXT-X-BYTERANGE:-1@5\na.ts",
        "#EXT-X-BYTERANGE:1@9223372036854775807\na.ts", "#EXT-X-BYTERANGE:9223372036854775808@0\na.ts",
        "#EXT-X-BYTERANGE:1@0\na.ts\n#EXTINF:1,\n#EXT-X-BYTERANGE:1\nb.ts",
        "#EXT-X-MAP:URI=\"m\",BYTERANGE=\"9223372036854775807@1\"\na.ts", "#EXT-X-MAP:BYTERANGE=\"1@0\"\na.ts",
        "#EXT-X-KEY:METHOD=AES-128\na.ts", "#EXT-X-KEY:URI=\"k\"\na.ts", "{$undefined}.ts",
        "#EXT-X-STREAM-INF:BANDWIDTH=1\na.m3u8", "a.ts\n#EXT-X-STREAM-INF:AVERAGE-BANDWIDTH=1\na.m3u8",
    ])
    func `Parsing a playlist with an invalid segment throws an error with the line number`(body: String) throws {
        let error = try #require(throws: ManifestError.self) { try playlist("#EXTM3U\n#EXTINF:1,\n\(body)\n") }
        #expect(error.code == .malformed)
        #expect(error.description.hasPrefix("line ") || error.description.contains("both a master and a media"))
    }

    @Test(arguments: [
        ("#EXT-X-PART-INF:PART-TARGET=0.3", ManifestLifetime.none), ("#EXT-X-PART:DURATION=0.3,URI=\"p\"", .none),
        ("#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,HOLD-BACK=12", .none), ("#EXT-X-SKIP:SKIPPED-SEGMENTS=3", .none),
        ("#EXT-X-SKIP:SKIPPED-SEGMENTS=3\n#EXT-X-ENDLIST", .none), ("#EXT-X-SERVER-CONTROL:HOLD-BACK=12", .seconds(2)),
        ("#EXT-X-PLAYLIST-TYPE:EVENT", .seconds(2)), ("#EXT-X-PLAYLIST-TYPE:VOD", .seconds(2)),
        ("#EXT-X-PART-INF:PART-TARGET=0.3\n#EXT-X-ENDLIST", .unchanging), ("#EXT-X-ENDLIST  ", .unchanging),
        ("#EXT-X-TARGETDURATION:x", .none), ("#EXT-X-TARGETDURATION:1e400", .none), ("", .seconds(2)),
    ])
    func `A complete playlist never expires, a live one expires soon, and a low-latency one is not stored`(
        tag: String, lifetime: ManifestLifetime
    ) throws {
        #expect(try playlist("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.ts\n\(tag)\n").lifetime == lifetime)
    }

    @Test func `Variables are substituted, and can be imported from the master playlist`() throws {
        let master = try playlist(
            """
            #EXTM3U
            #EXT-X-DEFINE:NAME="path",VALUE="http://cdn.example/x"
            #EXT-X-DEFINE:QUERYPARAM="sig"
            #EXT-X-STREAM-INF:BANDWIDTH=1
            {$path}/v.m3u8?sig={$sig}
            """, at: "http://h/m.m3u8?a=b&sig=1%2B2")
        #expect(master.variants.map(\.uri) == ["http://cdn.example/x/v.m3u8?sig=1+2"])
        let text = "#EXTM3U\n#EXT-X-DEFINE:IMPORT=\"path\"\n#EXTINF:1,\n{$path}/a.ts\n{$\n{$}\n#EXTINF:1,\n{$ b}\n"
        let media = try HLSPlaylist(parsing: Array(text.utf8), importing: master.variables)
        #expect(media.segments.map(\.uri) == ["http://cdn.example/x/a.ts", "{$ b}"])
    }

    @Test func `Parsing a playlist with more segments than the limit throws an error`() throws {
        let text = Array("#EXTM3U\n#EXT-X-VERSION:3\n\(String(repeating: "#EXTINF:1,\na\n", count: 101))".utf8)
        #expect(try HLSPlaylist(parsing: text, maximumSegments: 101).segments.count == 101)
        let error = #expect(throws: ManifestError.self) { try HLSPlaylist(parsing: text, maximumSegments: 100) }
        #expect(error?.code == .tooLarge)
    }
}

/// The traces for comparing policies: typical use of music, podcasts, long videos and short videos.
enum PlayTraces {
    static let day = 86_400.0

    /// All traces. Each is created when it is used, because some are large.
    static let all: [@Sendable () -> PlayTrace] = [music, podcasts, binge, shortVideos, household, scan]

    /// Music: 5,000 tracks with Zipf 0.9, of which 50 are replaced and 50 swapped per day. A fifth of the 150 playbacks
    /// per day are skipped.
    @Sendable static func music() -> PlayTrace { music(days: 120, isScanned: false) }

    /// Music over a shorter period, with a scan of all tracks each night.
    @Sendable static func scan() -> PlayTrace { music(days: 16, isScanned: true) }

    private static func music(days: Int, isScanned: Bool) -> PlayTrace {
        var builder = PlayTraceBuilder(seed: 1)
        var songs = PlayCatalog(count: 5000, exponent: 0.9, in: &builder) { $0.add(3...12, .song) }
        for number in 0..<days {
            let start = Double(number) * day
            for play in 0..<150 {
                let song = songs.draw(using: &builder.random)
                builder.listen(to: song, at: start + Double(play) * 400)
            }
            if isScanned {
                for (index, song) in songs.resources.enumerated() {
                    builder.scan(song, at: start + 62_000 + Double(index) * 4)
                }
            }
            songs.change(replacing: 50, swapping: 50, in: &builder)
        }
        return builder.trace(isScanned ? "T6 scan" : "T1 music")
    }

    /// Podcasts: 4 episodes of 48 to 72 MB per day. Each is played once, in 2 to 4 sessions that are hours apart.
    @Sendable static func podcasts() -> PlayTrace {
        var builder = PlayTraceBuilder(seed: 2)
        for number in 0..<360 {
            let episode = builder.add(48...72, .podcast)
            builder.watchInParts(
                episode, at: Double(number) * day / 4, parts: Int.random(in: 2...4, using: &builder.random),
                lasting: 3600)
        }
        return builder.trace("T2 podcasts")
    }

    /// Long videos of 1 to 3 GB: 2 per day, in up to 3 sessions, with rewinds.
    @Sendable static func binge() -> PlayTrace {
        var builder = PlayTraceBuilder(seed: 3)
        for number in 0..<100 {
            let film = builder.add(1000...3000, .film)
            builder.watchInParts(
                film, at: Double(number) * day / 2, parts: builder.filmParts(), lasting: 7200, rewinds: 3)
        }
        return builder.trace("T3 binge")
    }

    /// Short videos of 2 to 20 MB: 5,000 with Zipf 0.7, of which 500 are replaced per day. Most of the 300 playbacks
    /// per day stop early.
    @Sendable static func shortVideos() -> PlayTrace {
        var builder = PlayTraceBuilder(seed: 4)
        var videos = PlayCatalog(count: 5000, exponent: 0.7, in: &builder) { $0.add(2...20, .shortVideo) }
        for number in 0..<60 {
            for play in 0..<300 {
                let video = videos.draw(using: &builder.random)
                builder.glance(at: video, at: Double(number) * day + Double(play) * 200)
            }
            videos.change(replacing: 500, swapping: 0, in: &builder)
        }
        return builder.trace("T4 short videos")
    }

    /// All of these kinds of media, played by 50 users with similar preferences.
    @Sendable static func household() -> PlayTrace {
        var builder = PlayTraceBuilder(seed: 5)
        var songs = PlayCatalog(count: 5000, exponent: 0.9, in: &builder) { $0.add(3...12, .song) }
        var videos = PlayCatalog(count: 5000, exponent: 0.7, in: &builder) { $0.add(2...20, .shortVideo) }
        var podcasts = PlayCatalog(count: 400, exponent: 0.8, in: &builder) { $0.add(48...72, .podcast) }
        var films = PlayCatalog(count: 300, exponent: 0.8, in: &builder) { $0.add(1000...3000, .film) }
        for number in 0..<20 {
            for _ in 0..<50 {
                func time(_ builder: inout PlayTraceBuilder) -> Double {
                    Double(number) * day + Double.random(in: 0..<70_000, using: &builder.random)
                }
                for _ in 0..<15 {
                    builder.listen(to: songs.draw(using: &builder.random), at: time(&builder))
                }
                for _ in 0..<20 {
                    builder.glance(at: videos.draw(using: &builder.random), at: time(&builder))
                }
                if Int.random(in: 0..<2, using: &builder.random) == 0 {
                    builder.watchInParts(
                        podcasts.draw(using: &builder.random), at: time(&builder),
                        parts: Int.random(in: 2...4, using: &builder.random), lasting: 3600)
                }
                if Int.random(in: 0..<10, using: &builder.random) == 0 {
                    builder.watchInParts(
                        films.draw(using: &builder.random), at: time(&builder), parts: builder.filmParts(),
                        lasting: 7200, rewinds: 3)
                }
            }
            songs.change(replacing: 50, swapping: 50, in: &builder)
            videos.change(replacing: 500, swapping: 0, in: &builder)
            podcasts.change(replacing: 20, swapping: 10, in: &builder)
            films.change(replacing: 5, swapping: 5, in: &builder)
        }
        return builder.trace("T5 household", hasOneUser: false)
    }
}

extension PlayTraceBuilder {
    /// Plays a track. One in five is skipped after 10 to 30 seconds.
    fileprivate mutating func listen(to song: Int32, at time: Double) {
        let count = blockCount(song)
        let isSkipped = Int.random(in: 0..<5, using: &random) == 0
        // A track is encoded at 256 kbit/s, which is 32 KB/s.
        let end = isSkipped ? Int32(Double.random(in: 10...30, using: &random) / 2) : count
        play(song, from: 0, to: min(end, count), at: time, lasting: Double(count) * 2, readAhead: 4)
    }

    /// Plays a short video. Most playbacks stop within three seconds; by then, the player has read much more.
    fileprivate mutating func glance(at video: Int32, at time: Double) {
        let count = blockCount(video)
        let isLeft = Int.random(in: 0..<5, using: &random) < 3
        play(video, from: 0, to: isLeft ? min(6, count) : count, at: time, lasting: Double(count) / 2, readAhead: 24)
    }

    fileprivate mutating func filmParts() -> Int {
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<6: 1
        case 6..<9: 2
        default: 3
        }
    }

    /// Plays an entire resource in sessions that are several hours apart. Each session resumes one block before the end
    /// of the previous one.
    fileprivate mutating func watchInParts(
        _ resource: Int32, at time: Double, parts: Int, lasting seconds: Double, rewinds: Int = 0
    ) {
        let count = blockCount(resource)
        let stops =
            (1..<max(parts, 1)).map { _ in Int32.random(in: count / 10..<count * 9 / 10, using: &random) }.sorted()
            + [count]
        var (position, now) = (Int32(0), time)
        for stop in stops where stop > position {
            now = play(
                resource, from: position, to: stop, at: now, lasting: seconds, readAhead: 12, rewinds: rewinds)
            now += Double.random(in: 2...10, using: &random) * 3600
            position = max(0, stop - 1)
        }
    }
}

import Foundation
import HTTPTypes
import SpoolStorage
import SpoolTesting
import Testing

@testable import Spool

@Suite("Offline downloads", .timeLimit(.minutes(2)))
struct DownloadsTests {
    private static let film = PatternBytes(seed: 1, length: 1_000_000)

    private static func films(_ count: Int, _ rules: OriginRule...) -> [String: OriginResource] {
        Dictionary(uniqueKeysWithValues: (0..<count).map { ("/\($0)", OriginResource(.pattern(film), rules: rules)) })
    }

    @Test("A download is pinned before its first byte is received, completes, and is not evicted for other media")
    func kept() async throws {
        let stage = try MemoryStage(Self.films(6)) { $0.capacity = .bytes(2_500_000) }
        try await stage.session { cache in
            let source = MediaSource(url: stage.url("/0"))
            cache.downloads.isPaused = true
            let download = try await cache.downloads.add(source, to: "Flight")
            #expect(try await cache.media(for: source).storedResource()?.isPinned == true)
            #expect(download.state.phase == .waiting && cache.downloads.isPaused)
            cache.downloads.isPaused = false
            let state = await download.finished()
            #expect(state.isComplete && state.storedByteCount == 1_000_000)
            for number in 1..<6 { try await cache.media(for: stage.url("/\(number)")).check(.all, Self.film) }
            let set = try #require(try await cache.downloads.set("Flight"))
            #expect(set.isComplete && set.byteCount == 1_000_000 && set.fractionCompleted == 1)
            #expect(try await cache.downloads.set("flight") == nil)
        }
        #expect(stage.origin.log.bytesSent("/0") == 1_000_000)
        try await stage.checkComplete(Self.film, "/0")
    }

    @Test("After the process is killed, a download set reports its missing bytes and resumes where it stopped")
    func killed() async throws {
        let films = Self.films(1, .request(0, .stall(after: 300_000))).merging(Self.films(2)) { stalling, _ in stalling
        }
        let stage = try MemoryStage(films)
        try await stage.sessionThatIsKilled { cache in
            let downloads = try await cache.downloads.add(
                ["/0", "/1"].map { MediaSource(url: stage.url($0)) }, to: "Flight")
            for await state in downloads[0].states where state.storedByteCount >= 262_144 { break }
            // A killed process sends no more requests.
            cache.downloads.isPaused = true
        }
        try await stage.session { cache in
            let set = try #require(try await cache.downloads.set("Flight"))
            #expect(set.missing.count == 2 && set.items.allSatisfy { !$0.isRunning })
            #expect(set.storedByteCount > 0)
            #expect(set.items.map(\.redactedURL) == ["/0", "/1"].map { stage.url($0).absoluteString })
            #expect(set.fractionCompleted > 0 && set.fractionCompleted < 1)
            let downloads = try await cache.downloads.resume()
            #expect(downloads.count == 2)
            // A running download is not started again.
            #expect(try await cache.downloads.resume("Flight").count <= 2)
            for download in downloads { #expect(await download.finished().isComplete) }
            #expect(try await cache.downloads.resume().isEmpty)
        }
        #expect(stage.origin.log.distinctBytesSent("/0") == 1_000_000)
        // The incomplete block is fetched again.
        #expect(stage.origin.log.bytesSent("/0") <= 1_065_536)
        try await stage.checkComplete(Self.film, "/0")
        try await stage.checkComplete(Self.film, "/1")
    }

    @Test("A file in several download sets is stored once, and stays pinned until all sets and pins are released")
    func shared() async throws {
        let stage = try MemoryStage(Self.films(3))
        try await stage.session { cache in
            let sources = (0..<3).map { MediaSource(url: stage.url("/\($0)")) }
            try await cache.media(for: sources[2]).check(.bytes(0..<10), Self.film)
            await cache.waitUntilIdle()
            try await cache.pin(cache.key(for: sources[2]))
            let first = try await cache.downloads.add(sources, to: "A")
            let second = try await cache.downloads.add([sources[1], sources[2]], to: "B")
            for download in first + second { #expect(await download.finished().isComplete) }
            func pins() async throws -> [Bool] {
                var pins: [Bool] = []
                for source in sources {
                    pins.append(try await cache.media(for: source).storedResource()?.isPinned ?? false)
                }
                return pins
            }
            #expect(try await cache.downloads.sets().map(\.name) == ["A", "B"])
            #expect(try await cache.downloads.release("A"))
            #expect(try await pins() == [false, true, true])
            // A file in a set stays pinned after its own pin is removed.
            try await cache.unpin(cache.key(for: sources[1]))
            #expect(try await pins() == [false, true, true])
            #expect(try await cache.downloads.remove(sources[1], from: "B"))
            #expect(try await pins() == [false, false, true])
            #expect(try await cache.downloads.release("B"))
            #expect(try await pins() == [false, false, true])
            #expect(try await !cache.downloads.release("B"))
            #expect(try await cache.downloads.sets().isEmpty)
            try await cache.unpin(cache.key(for: sources[2]))
            #expect(try await pins() == [false, false, false])
        }
        for number in 0..<3 { #expect(stage.origin.log.bytesSent("/\(number)") == 1_000_000) }
    }

    @Test("E107: a download of unknown length that reaches the capacity fails, is unpinned, and is not resumed")
    func endless() async throws {
        let radio = PatternBytes(seed: 2, length: 100_000_000)
        let stage = try MemoryStage([
            "/radio": OriginResource(.pattern(radio), rules: [.always(.ignoresRanges()), .always(.noLength(.chunked))])
        ]) { $0.capacity = .bytes(2_500_000) }
        let source = MediaSource(url: stage.url("/radio"))
        try await stage.session { cache in
            let download = try await cache.downloads.add(source)
            let state = await download.finished()
            let error = try #require(state.error as? CacheError)
            #expect(state.phase == .failed && error.code == .capacityExceeded)
            #expect(error.message.contains("/radio") && error.message.contains("of a body of unknown length"))
            #expect(error.message.contains("2,500,000"))
            await cache.waitUntilIdle()
            #expect(try await cache.media(for: source).storedResource()?.isPinned == false)
            #expect(try await cache.downloads.resume().isEmpty)
        }
        let sent = stage.origin.log.bytesSent("/radio")
        #expect(sent < 50_000_000)
        try await stage.session { cache in
            let set = try await cache.downloads.set(Downloads.standardSet)
            #expect(set?.items.count == 1)
            #expect(try await cache.downloads.resume().isEmpty)
        }
        #expect(stage.origin.log.bytesSent("/radio") == sent)
    }

    @Test("E107: a download of unknown length that fits within the capacity is pinned when its body has ended")
    func unknownLength() async throws {
        let stage = try MemoryStage([
            "/0": OriginResource(.pattern(Self.film), rules: [.always(.ignoresRanges()), .always(.noLength(.chunked))])
        ]) { $0.capacity = .bytes(2_500_000) }
        try await stage.session { cache in
            let source = MediaSource(url: stage.url("/0"))
            let download = try await cache.downloads.add(source)
            let state = await download.finished()
            #expect(state.isComplete, "\(String(describing: state.error))")
            await cache.waitUntilIdle()
            #expect(try await cache.media(for: source).storedResource()?.isPinned == true)
            #expect(try await cache.downloads.set(Downloads.standardSet)?.isComplete == true)
        }
    }

    @Test("A download that does not fit next to pinned media causes an error and an event; other downloads complete")
    func capacity() async throws {
        let stage = try MemoryStage(Self.films(4)) { $0.capacity = .bytes(2_500_000) }
        try await stage.session { cache in
            let events = EventLog(cache)
            let sources = (0..<4).map { MediaSource(url: stage.url("/\($0)")) }
            let downloads = try await cache.downloads.add(Array(sources[..<3]))
            for download in downloads[..<2] { #expect(await download.finished().isComplete) }
            let state = await downloads[2].finished()
            #expect(state.phase == .failed && (state.error as? CacheError)?.code == .capacityExceeded)
            let told = await events.first { kind -> CacheError? in
                if case .notCached(let cause) = kind { cause } else { nil }
            }
            #expect(told?.code == .capacityExceeded)
            let set = try #require(try await cache.downloads.set(Downloads.standardSet))
            #expect(set.missing.map(\.error?.code) == [.capacityExceeded] && set.items.count == 3)
            // The length is known now.
            await cache.waitUntilIdle()
            await #expect(throws: CacheError.self) { try await cache.downloads.add(sources[2], to: "Other") }
            #expect(try await cache.downloads.set("Other") == nil)
            // With free space, the download resumes.
            #expect(try await cache.downloads.remove(sources[0]))
            for download in try await cache.downloads.resume() { #expect(await download.finished().isComplete) }
            #expect(try await cache.downloads.set(Downloads.standardSet)?.isComplete == true)
            #expect(cache.storedByteCount <= 2_500_000)
        }
    }

    @Test("A download fails with an error while the origin is unreachable, and resumes afterward")
    func originGone() async throws {
        let stage = try MemoryStage(Self.films(1))
        try await stage.session { cache in
            stage.origin.setReachable(false)
            let download = try await cache.downloads.add(MediaSource(url: stage.url("/0")), to: "Flight")
            let state = await download.finished()
            #expect(state.phase == .failed && (state.error as? CacheError)?.code == .originUnavailable)
            #expect(try await cache.downloads.set("Flight")?.items.first?.error?.code == .originUnavailable)
            stage.origin.setReachable(true)
            let again = try #require(try await cache.downloads.resume().first)
            #expect(await again.finished().isComplete)
            let item = try #require(try await cache.downloads.set("Flight")?.items.first)
            #expect(item.isComplete && item.error == nil && item.missingByteCount == 0)
        }
    }

    @Test("Queries, tokens and resolved URLs are not stored, so sources that use them must be added again")
    func secrets() async throws {
        let stage = try MemoryStage(Self.films(3)) { $0.keyPolicy = .ignoringQuery }
        let signed = try #require(URL(string: "http://origin.test/0?token=s3cret#t"))
        let sources = [
            MediaSource(url: signed),
            MediaSource(url: stage.url("/1"), headerFields: [.authorization: "Bearer s3cret"]),
            MediaSource(url: stage.url("/2")) { _ in ResolvedRequest(url: stage.url("/2?token=s3cret")) },
        ]
        try await stage.session { cache in
            cache.downloads.isPaused = true
            try await cache.downloads.add(sources, to: "Flight")
            let files = try FileManager.default.contentsOfDirectory(atPath: stage.directory).filter {
                $0.hasPrefix("catalog")
            }
            for file in files {
                let bytes = try Data(contentsOf: URL(fileURLWithPath: stage.directory + "/" + file))
                #expect(bytes.range(of: Data("s3cret".utf8)) == nil, "\(file)")
            }
        }
        try await stage.session { cache in
            let set = try #require(try await cache.downloads.set("Flight"))
            #expect(set.missing.count == 3 && set.items.allSatisfy { $0.url == nil })
            #expect(try await cache.downloads.resume().isEmpty)
            for download in try await cache.downloads.add(sources, to: "Flight") {
                #expect(await download.finished().isComplete)
            }
            try await cache.downloads.add(MediaSource(url: signed), to: "Flight", remembersQuery: true)
            let items = try #require(try await cache.downloads.set("Flight")?.items)
            #expect(items.count == 3 && items[0].url?.absoluteString == "http://origin.test/0?token=s3cret")
        }
    }

    @Test("The states of a set start with the current state and end on release, which cancels the set's downloads")
    func states() async throws {
        let stage = try MemoryStage(Self.films(2, .always(.stall(after: 300_000))))
        try await stage.session(isFlowing: false) { cache in
            let downloads = try await cache.downloads.add(
                ["/0", "/1"].map { MediaSource(url: stage.url($0)) }, to: "Flight")
            var states = cache.downloads.states(of: "Flight").makeAsyncIterator()
            #expect(await states.next()?.items.count == 2)
            while let state = await states.next(), state.storedByteCount == 0 {}
            #expect(try await cache.downloads.release("Flight"))
            for download in downloads { #expect(await download.finished().phase == .cancelled) }
            while await states.next() != nil {}
            stage.origin.release()
        }
    }

    @Test("A file that is removed from the cache is reported as missing, and can be downloaded again")
    func removed() async throws {
        let stage = try MemoryStage(Self.films(1))
        try await stage.session { cache in
            let source = MediaSource(url: stage.url("/0"))
            #expect(await (try await cache.downloads.add(source)).finished().isComplete)
            try await cache.remove(cache.key(for: source))
            await cache.waitUntilIdle()
            #expect(try await cache.downloads.sets().first?.missing.count == 1)
            for download in try await cache.downloads.resume() { #expect(await download.finished().isComplete) }
            #expect(try await cache.downloads.sets().first?.isComplete == true)
            #expect(try await cache.media(for: source).storedResource()?.isPinned == true)
        }
    }

    @Test("The bytes of a finished download are counted from the catalog, because they may have been removed")
    func ended() {
        var record = DownloadRecord(set: "Flight", key: "0", url: "http://origin.test/0", source: nil)
        record.length = 1_000_000
        var state = PreloadState()
        (state.storedByteCount, state.targetByteCount) = (1_000_000, 1_000_000)
        state.phase = .running
        let running = DownloadSet.Item(record, nil, state)
        #expect(running.isRunning && running.storedByteCount == 1_000_000)
        state.phase = .finished
        let ended = DownloadSet.Item(record, nil, state)
        #expect(!ended.isRunning && ended.missingByteCount == 1_000_000)
    }

    @Test("After a download has failed because the response was empty, the item is not complete")
    func emptyResponse() {
        let record = DownloadRecord(set: "Flight", key: "0", url: "http://origin.test/0", source: nil)
        var state = PreloadState()
        (state.phase, state.targetByteCount) = (.failed, 0)
        state.error = CacheError(.malformedResponse, "the origin sent an empty response")
        let item = DownloadSet.Item(record, nil, state)
        #expect(!item.isComplete && item.length == nil)
    }
}

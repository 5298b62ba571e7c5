import Foundation
import HTTPTypes
import SpoolStorage
import SpoolTesting
import Synchronization
import Testing

@testable import Spool

@Suite("Background downloads", .timeLimit(.minutes(2)))
struct BackgroundDownloadsTests {
    private static let film = PatternBytes(seed: 1, length: 1_000_000)
    private static let chunkSize: Int64 = 131_072

    /// Returns a stage whose first response stalls after 300,000 bytes, and a session of a simulated system.
    private static func stage(
        _ configure: (inout MediaCache.Configuration) -> Void = { _ in }
    ) throws -> (stage: MemoryStage, session: ScriptedSession) {
        let resource = OriginResource(.pattern(film), rules: [.request(0, .stall(after: 300_000))])
        let stage = try MemoryStage(["/0": resource], configure: configure)
        return (stage, try ScriptedSession(stage.origin))
    }

    /// Starts the download of `/0`, and hands it over after four blocks.
    @discardableResult
    private static func handOver(
        _ source: MediaSource, _ cache: MediaCache, _ session: ScriptedSession, maximumTransfers: Int = 64
    ) async throws -> BackgroundTransferReport {
        let download = try await cache.downloads.add(source, to: "Flight")
        for await state in download.states where state.storedByteCount >= 262_144 { break }
        return try await cache.downloads.handOver(
            to: session, chunkSize: chunkSize, maximumTransfers: maximumTransfers)
    }

    /// Waits until the download of `/0` has ended.
    private static func finish(_ cache: MediaCache) async throws {
        let downloads = try await cache.downloads.resume()
        for download in downloads {
            let state = await download.finished()
            #expect(state.isComplete, "\(String(describing: state.error))")
        }
        #expect(try await cache.downloads.set("Flight")?.isComplete == true)
    }

    @Test("E420: missing ranges are requested with If-Range, and received files are stored without another request")
    func handedOver() async throws {
        let (stage, session) = try Self.stage()
        try await stage.session { cache in
            let report = try await Self.handOver(MediaSource(url: stage.url("/0")), cache, session)
            #expect(report.startedCount == 6 && report.discarded.isEmpty && report.notHandedOver.isEmpty)
            let ranges = session.started.map { $0.headerFields[.range] ?? "" }
            #expect(ranges.first == "bytes=262144-393215" && ranges.last == "bytes=917504-999999")
            #expect(Set(session.started.map { $0.headerFields[.ifRange] }) == ["\"v1\""])
            #expect(session.started.allSatisfy { !$0.identifier.contains("origin.test") })
            try await session.finish()
            let requests = stage.origin.log.exchanges.count
            let result = try await cache.downloads.takeBack(from: session)
            #expect(result.storedByteCount >= 700_000 && result.discarded.isEmpty)
            try await Self.finish(cache)
            #expect(stage.origin.log.exchanges.count == requests)
            #expect(await session.transfers().isEmpty)
        }
        #expect(stage.origin.log.bytesSent("/0") <= 1_065_536)
        try await stage.checkComplete(Self.film, "/0")
    }

    @Test("E421: after the app is killed, the files that the system has received in the meantime are stored")
    func killed() async throws {
        let (stage, session) = try Self.stage()
        try await stage.sessionThatIsKilled { cache in
            try await Self.handOver(MediaSource(url: stage.url("/0")), cache, session)
        }
        try await session.finish(3)
        try await stage.session { cache in
            let result = try await cache.downloads.takeBack(from: session)
            #expect(result.storedByteCount >= 3 * Self.chunkSize - 65_536 && result.discarded.isEmpty)
            try await Self.finish(cache)
            #expect(await session.transfers().isEmpty)
        }
        #expect(stage.origin.log.bytesSent("/0") <= 1_065_536)
        try await stage.checkComplete(Self.film, "/0")
    }

    @Test(
        "E422: a file that does not match the requested range of the stored version is discarded, with an error",
        arguments: [
            (ScriptedSession.Fault.whole, CacheError.Code.malformedResponse, "the whole resource"),
            (.otherValidator, .resourceChanged, "unidentified"), (.otherRange, .malformedResponse, "Content-Range"),
            (.truncated, .incomplete, "the received file contains 131,071 instead of 131,072 bytes"),
            (.failed, .originUnavailable, "the network was lost"), (.busy, .originErrorStatus, "status 503"),
            (.unauthorized, .originErrorStatus, "status 401"),
        ])
    func refused(_ fault: ScriptedSession.Fault, _ code: CacheError.Code, _ cause: String) async throws {
        let (stage, session) = try Self.stage()
        try await stage.session { cache in
            try await Self.handOver(MediaSource(url: stage.url("/0")), cache, session)
            try await session.finish(1, fault)
            try await session.finish(2)
            let result = try await cache.downloads.takeBack(from: session)
            #expect(result.storedByteCount == 2 * Self.chunkSize)
            let error = try #require(result.discarded.first)
            #expect(result.discarded.count == 1 && error.code == code && error.range == 262_144..<393_216)
            #expect(error.message.contains("/0, bytes 262,144–393,215") && error.message.contains(cause), "\(error)")
            #expect(error.httpStatus == (fault == .busy ? 503 : fault == .unauthorized ? 401 : nil))
            try await Self.finish(cache)
            #expect(await session.transfers().isEmpty)
        }
        #expect(stage.origin.log.bytesSent("/0") - session.wasted <= 1_065_536)
        try await stage.checkComplete(Self.film, "/0")
    }

    @Test(
        "E423: media without a strong validator, length or byte ranges is not handed over, and the reason is reported",
        arguments: ["weak", "chunked", "whole"])
    func unsuitable(_ kind: String) async throws {
        var resource = OriginResource(.pattern(Self.film), rules: [.always(.stall(after: 300_000))])
        let cause: String
        switch kind {
        case "weak":
            resource.etag = "W/\"v1\""
            cause = "the origin sent no strong validator"
        case "chunked":
            resource.rules += [.always(.ignoresRanges()), .always(.noLength(.chunked))]
            cause = "the length is unknown"
        default:
            resource.rules += [.always(.ignoresRanges())]
            cause = "the origin does not send byte ranges of the stored version"
        }
        let stage = try MemoryStage(["/0": resource])
        let session = try ScriptedSession(stage.origin)
        try await stage.session { cache in
            let report = try await Self.handOver(MediaSource(url: stage.url("/0")), cache, session)
            #expect(report.startedCount == 0 && session.started.isEmpty)
            #expect(report.notHandedOver.map(\.message) == ["\(stage.url("/0").absoluteString): \(cause)"])
            // The app itself continues the download, because nothing was handed over.
            #expect(!cache.downloads.work.isHandedOver)
            cache.downloads.isPaused = true
            stage.origin.release()
        }
    }

    @Test(
        "E424: if the version changes during the transfers, the files are discarded and the new version is downloaded")
    func changed() async throws {
        let (stage, session) = try Self.stage()
        let remake = PatternBytes(seed: 9, length: 900_000)
        try await stage.session { cache in
            try await Self.handOver(MediaSource(url: stage.url("/0")), cache, session)
            stage.origin.update("/0") { resource in
                resource.content = .pattern(remake)
                resource.etag = "\"v2\""
            }
            try await session.finish(1)
            try await session.finish(1, .otherValidator)
            let result = try await cache.downloads.takeBack(from: session)
            #expect(result.storedByteCount == 0 && result.discarded.count == 2)
            try await Self.finish(cache)
        }
        try await stage.checkComplete(remake, "/0")
    }

    @Test("E425: requests contain the source's current credentials, but transfer identifiers do not")
    func credentials() async throws {
        let (stage, session) = try Self.stage()
        let count = Mutex(0)
        let url = stage.url("/0")
        let source = MediaSource(url: url) { _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            return ResolvedRequest(url: url, headerFields: [.authorization: "Bearer \(number)"])
        }
        try await stage.session { cache in
            try await Self.handOver(source, cache, session)
            #expect(Set(session.started.map { $0.headerFields[.authorization] }) == ["Bearer 2"])
            #expect(count.withLock { $0 } == 2)
            #expect(session.started.allSatisfy { !$0.identifier.contains("Bearer") })
            try await session.finish(1, .unauthorized)
            let result = try await cache.downloads.takeBack(from: session)
            #expect(result.discarded.map(\.httpStatus) == [401])
            try await Self.finish(cache)
        }
        try await stage.checkComplete(Self.film, "/0")
    }

    @Test("E426: taking downloads back cancels unfinished transfers, and at most one chunk is fetched twice")
    func cancelled() async throws {
        let (stage, session) = try Self.stage()
        try await stage.session { cache in
            try await Self.handOver(MediaSource(url: stage.url("/0")), cache, session)
            try await session.finish(2)
            try await session.receiveHalf()
            let result = try await cache.downloads.takeBack(from: session)
            #expect(result.storedByteCount >= 2 * Self.chunkSize - 65_536 && session.waiting.isEmpty)
            try await Self.finish(cache)
        }
        #expect(stage.origin.log.bytesSent("/0") <= 1_000_000 + Self.chunkSize)
        try await stage.checkComplete(Self.film, "/0")
    }

    @Test("E427: a second handover stores received files, and starts transfers up to the limit")
    func again() async throws {
        let (stage, session) = try Self.stage()
        try await stage.session { cache in
            let first = try await Self.handOver(
                MediaSource(url: stage.url("/0")), cache, session, maximumTransfers: 2)
            #expect(first.startedCount == 2)
            try await session.finish(1)
            let second = try await cache.downloads.handOver(
                to: session, chunkSize: Self.chunkSize, maximumTransfers: 2)
            #expect(second.startedCount == 1 && second.storedByteCount >= Self.chunkSize - 65_536)
            #expect(session.waiting.count == 2 && Set(session.started.map(\.identifier)).count == 3)
            // In the meantime, the app itself does not download any bytes.
            #expect(try await cache.downloads.set("Flight")?.isComplete == false)
            try await session.finish()
            try await cache.downloads.takeBack(from: session)
            try await Self.finish(cache)
        }
        #expect(stage.origin.log.bytesSent("/0") <= 1_065_536)
        try await stage.checkComplete(Self.film, "/0")
    }

    @Test("E428: when a set is released, its transfers are cancelled and its files are discarded")
    func released() async throws {
        let (stage, session) = try Self.stage()
        try await stage.session { cache in
            try await Self.handOver(MediaSource(url: stage.url("/0")), cache, session)
            try await session.finish(1)
            try await cache.downloads.release("Flight")
            let report = try await cache.downloads.handOver(to: session)
            #expect(report.startedCount == 0 && report.storedByteCount == 0 && report.discarded.count == 6)
            #expect(report.discarded.allSatisfy { $0.code == .notStored })
            #expect(await session.transfers().isEmpty && !cache.downloads.work.isHandedOver)
        }
    }

    @Test("E428: paused downloads are not handed over, and media that does not fit is reported")
    func paused() async throws {
        let (stage, session) = try Self.stage { $0.capacity = .bytes(1_500_000) }
        stage.origin.set("/1", OriginResource(.pattern(Self.film)))
        try await stage.session { cache in
            try await Self.handOver(MediaSource(url: stage.url("/0")), cache, session)
            try await cache.downloads.takeBack(from: session)
            try await Self.finish(cache)
            cache.downloads.isPaused = true
            try await cache.downloads.add(MediaSource(url: stage.url("/1")), to: "Flight")
            let paused = try await cache.downloads.handOver(to: session)
            #expect(paused.startedCount == 0 && paused.notHandedOver.isEmpty)
            let count = session.started.count
            cache.downloads.isPaused = false
            let report = try await cache.downloads.handOver(to: session)
            #expect(report.notHandedOver.map(\.code) == [.capacityExceeded] && session.started.count == count)
        }
    }

    @Test("E429, E483: a reopened folder of a session keeps complete files and the app's own files, without cookies")
    func folder() throws {
        let scratch = try ScratchDirectory()
        let place = URL(fileURLWithPath: scratch.file("received"))
        let folder = try BackgroundTransferFolder(place)
        let file = URL(fileURLWithPath: scratch.file("download.tmp"))
        let head = HTTPResponse(
            status: .partialContent,
            headerFields: [.eTag: "\"v1\"", .contentRange: "bytes 0-1/9", .setCookie: "a=secret", .age: "5"])
        for name in ["a", "b/../\u{0}"] {
            try Data([1, 2]).write(to: file)
            try folder.receive(file, head, for: name)
        }
        #expect(throws: (any Error).self) { try folder.receive(file, head, for: "missing") }
        folder.fail("c", UpstreamError(.timedOut, "it timed out"))
        #expect(folder.transfers.count == 4)
        try Data([3]).write(to: place.appendingPathComponent(CacheKey("incomplete").hash))
        // The app has other files in the folder.
        let others = ["document.txt", "note.response", String(repeating: "A", count: 64)]
        for name in others { try Data([4]).write(to: place.appendingPathComponent(name)) }
        try FileManager.default.createDirectory(
            at: place.appendingPathComponent("folder"), withIntermediateDirectories: false)
        // Simulates another launch.
        let reopened = try BackgroundTransferFolder(place)
        let names = try FileManager.default.contentsOfDirectory(atPath: place.path)
        #expect(names.count == 8 && Set(names).isSuperset(of: others + ["folder"]))
        let transfers = reopened.transfers
        #expect(Set(transfers.map(\.identifier)) == ["a", "b/../\u{0}"])
        for transfer in transfers {
            guard case .finished(let head, let file) = transfer.state else {
                Issue.record("\(transfer) is not finished")
                continue
            }
            #expect(head.status == .partialContent && head.headerFields[.contentRange] == "bytes 0-1/9")
            #expect(head.headerFields[.setCookie] == nil && head.headerFields[.age] == "5")
            #expect(try Data(contentsOf: file) == Data([1, 2]))
            reopened.remove(transfer.identifier)
        }
        #expect(reopened.transfers.isEmpty)
    }

    @Test("E429: an identifier that another program has changed is ignored")
    func identifiers() throws {
        let chunk = BackgroundChunk(key: CacheKey("a"), range: 0..<65_536, length: 70_000, validator: "\"v1\"")
        #expect(BackgroundChunk(identifier: chunk.identifier) == chunk)
        let key = CacheKey("a").hash
        for (lower, upper, length, hash) in [
            (-1, 5, 9, key), (5, 5, 9, key), (0, 10, 9, key), (0, 9, Int64.max, key), (0, 5, 9, "../a"),
        ] as [(Int64, Int64, Int64, String)] {
            let range = #""lower":\#(lower),"upper":\#(upper)"#
            let text = #"{"keyHash":"\#(hash)","length":\#(length),\#(range),"validator":"x"}"#
            #expect(BackgroundChunk(identifier: text) == nil, "\(text)")
        }
        #expect(BackgroundChunk(identifier: "") == nil)
    }
}

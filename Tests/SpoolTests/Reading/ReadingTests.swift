import Foundation
import HTTPTypes
import SpoolTesting
import Synchronization
import Testing

@testable import Spool

@Suite("Reading ranges, seeking, and reading from blocking threads", .timeLimit(.minutes(10)))
struct ReadingTests {
    private static let length: Int64 = 3_000_000
    private let film = PatternBytes(seed: 1, length: ReadingTests.length)

    private func bytes(_ range: Range<Int64>) -> Data { Data(film.bytes(range)) }

    /// Runs `body` on a new thread.
    private func onThread<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
        }
    }

    @Test("A read of a range returns all of its bytes, clipped at the end, or throws an error")
    func data() async throws {
        let stage = try MemoryStage(["/a": .pattern(Self.length)])
        try await stage.session { (cache: MediaCache) async throws in
            let media = cache.media(for: stage.url())
            #expect(try await media.data(in: 5..<5).isEmpty)
            #expect(media.statistics.originRequests == 0)
            #expect(try await media.data(in: 1_000_000..<1_700_001) == bytes(1_000_000..<1_700_001))
            #expect(try await media.data(in: 2_999_990..<4_000_000) == bytes(2_999_990..<Self.length))
            let past = await #expect(throws: CacheError.self) {
                try await media.data(in: Self.length..<Self.length + 1)
            }
            #expect(past?.code == .unsatisfiableRange)
        }
        stage.origin.setReachable(false)
        try await stage.session { (cache: MediaCache) async throws in
            let error = await #expect(throws: CacheError.self) {
                try await cache.media(for: stage.url()).data(in: 0..<Self.length)
            }
            #expect(error?.code == .originUnavailable)
        }
    }

    @Test("A reader opened at an offset reads to the end, and a reader opened for a range reads that range")
    func ranges() async throws {
        let stage = try MemoryStage(["/a": .pattern(Self.length)])
        try await stage.session { (cache: MediaCache) async throws in
            let media = cache.media(for: stage.url())
            for (reader, range) in [
                (media.reader(in: 1_000_000...), 1_000_000..<Self.length), (media.reader(in: 10..<20), 10..<20),
                (media.sliceReader(.bytes(10..<20)), 10..<20),
            ] {
                var data = Data()
                for try await chunk in reader {
                    #expect(chunk.offset == range.lowerBound + Int64(data.count))
                    let count = chunk.withUnsafeBytes { bytes in
                        data.append(contentsOf: bytes)
                        return bytes.count
                    }
                    #expect(count == chunk.count && chunk.data == data.suffix(count))
                }
                #expect(data == bytes(range))
            }
        }
    }

    @Test("A reader continues at the target of a seek, even after its end or an error; its upper bound is unchanged")
    func seek() async throws {
        let stage = try MemoryStage(["/a": .pattern(Self.length)])
        try await stage.session { (cache: MediaCache) async throws in
            let media = cache.media(for: stage.url())
            let reader = media.reader(in: 100..<2_000_000, chunkSize: 1000)
            for offset in [100, 1_500_000, 50, 700_000, 700_500] as [Int64] {
                if offset != 100 { reader.seek(to: offset) }
                // The sizes of the chunks depend on the number of bytes received so far.
                var end = offset
                while end < offset + 1500 {
                    let chunk = try #require(try await reader.next())
                    #expect(chunk.offset == end && chunk.data == bytes(chunk.range))
                    end = chunk.range.upperBound
                }
            }
            reader.seek(to: 1_999_990)
            #expect(try await reader.check(film) == 2_000_000)
            #expect(try await reader.next() == nil)
            for offset in [2_000_000, 2_500_000] as [Int64] {
                reader.seek(to: offset)
                #expect(try await reader.next() == nil)
            }
            for offset in [-1, Self.length, .max] {
                let all = media.reader(in: 0...)
                all.seek(to: offset)
                let error = await #expect(throws: CacheError.self) { try await all.next() }
                #expect(error?.code == .unsatisfiableRange)
                #expect(error?.key == media.key && error?.range?.lowerBound == offset)
                all.seek(to: 10)
                #expect(try await all.next()?.offset == 10)
            }
            let last = media.reader(.suffix(10))
            #expect(try await last.next()?.offset == Self.length - 10)
            last.seek(to: 5)
            #expect(try await last.next()?.offset == 5)
            reader.cancel()
            reader.seek(to: 100)
            #expect(try await reader.next() == nil)
        }
    }

    @Test("After a seek, a waiting call to next() returns bytes from the new offset")
    func seekWhileWaiting() async throws {
        let stage = try MemoryStage([
            "/a": OriginResource(.pattern(film), rules: [.request(0, .stall(after: 30_000))])
        ])
        try await stage.session { (cache: MediaCache) async throws in
            let reader = cache.media(for: stage.url()).reader(chunkSize: 30_000)
            try await reader.check(film, upTo: 30_000)
            // The call may or may not be waiting already.
            let pull = Task { try await reader.next() }
            await Task.yield()
            reader.seek(to: 2_000_000)
            #expect(try await pull.value?.offset == 2_000_000)
            reader.cancel()
            stage.origin.release()
        }
    }

    @Test("A blocking thread reads at any offset, in pieces of any size, up to the end")
    func blocking() async throws {
        let stage = try MemoryStage(["/a": .pattern(Self.length)])
        try await stage.session { (cache: MediaCache) async throws in
            let reader = cache.media(for: stage.url()).reader()
            let film = film
            try await onThread {
                var random = SplitMix(7)
                let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 300_000, alignment: 1)
                defer { room.deallocate() }
                func read(_ count: Int, at offset: Int64) throws -> Int {
                    let buffer = UnsafeMutableRawBufferPointer(rebasing: room[..<count])
                    let got = try reader.read(into: buffer, at: offset)
                    try film.verify(Data(buffer[..<got]), at: offset)
                    return got
                }
                for _ in 0..<20 {
                    var offset = Int64.random(in: 0..<Self.length, using: &random)
                    for _ in 0..<5 where offset < Self.length {
                        let got = try read(Int.random(in: 1...300_000, using: &random), at: offset)
                        #expect(got > 0)
                        offset += Int64(got)
                    }
                }
                var offset: Int64 = 0
                while case let got = try read(65_536, at: offset), got > 0 { offset += Int64(got) }
                #expect(offset == Self.length)
                #expect(try read(10, at: Self.length) == 0)
                #expect(try read(10, at: Self.length + 1_000_000) == 0)
                #expect(try read(0, at: 0) == 0)
                #expect(try read(10, at: 0) == 10)
                #expect(throws: CacheError.self) { try read(10, at: -1) }
            }
        }
    }

    enum Delay: CaseIterable { case resolver, head, length }

    @Test(
        "A wait for a resolver or for the length ends when the reader is cancelled or the cache is closed",
        arguments: Delay.allCases, [false, true])
    func waitBeforeReading(_ delay: Delay, isClosed: Bool) async throws {
        let stage = try MemoryStage(["/a": .pattern(Self.length)], freshness: .http)
        let (begun, gate) = (ChangeSignal(), ChangeSignal())
        let film = film
        stage.origin.script("/a") { request, _ in
            let isSuffix = request.headerFields[.range]?.hasPrefix("bytes=-") == true
            if delay == .head || isSuffix {
                begun.change()
                _ = await gate.wait(beyond: 0)
                try Task.checkCancellation()
            }
            var head = HTTPResponse(status: .partialContent)
            head.headerFields = [.contentRange: "bytes 0-65535/*", .contentLength: "65536", .eTag: "\"1\""]
            return .init(head, .pattern(film), body: 0..<65536)
        }
        let url = stage.url()
        let cache = try await stage.open()
        let media = cache.media(
            for: MediaSource(url: url) { _ in
                begun.change()
                if delay == .resolver { _ = await gate.wait(beyond: 0) }
                return ResolvedRequest(url: url)
            })
        let reader = media.reader(delay == .resolver ? .all : .suffix(10))
        let pull = Task { try await reader.next() }
        let blocked = media.reader()
        let read = Task {
            guard delay == .resolver else { throw CancellationError() }
            return try await onThread {
                try withUnsafeTemporaryAllocation(byteCount: 10, alignment: 1) { try blocked.read(into: $0, at: 0) }
            }
        }
        let states = Task { for await _ in media.states {} }
        _ = await begun.wait(beyond: delay == .resolver ? 0 : 1)
        if isClosed {
            try await stage.flowing { await cache.close() }
            let error = await #expect(throws: CacheError.self) { try await pull.value }
            #expect(error?.code == .closed && error?.key == media.key)
            await states.value
        } else {
            reader.cancel()
            blocked.cancel()
            #expect(try await pull.value == nil)
        }
        await #expect(throws: (any Error).self) { try await read.value }
        gate.change()
        try await stage.flowing { await cache.close() }
        await states.value
    }

    @Test("If a reader seeks while it waits for the length, it continues at the target of the seek")
    func seekBeforeReading() async throws {
        let stage = try MemoryStage(["/a": OriginResource(.pattern(film), rules: [.request(0, .stall(after: nil))])])
        try await stage.session { (cache: MediaCache) async throws in
            let reader = cache.media(for: stage.url()).reader(.suffix(10))
            let pull = Task { try await reader.next() }
            _ = try await stage.origin.log.first { _ in true }
            reader.seek(to: 2_000_000)
            #expect(try await pull.value?.offset == 2_000_000)
            reader.cancel()
            stage.origin.release()
        }
    }

    @Test("A blocked read ends when its reader is cancelled, its cache is closed, or its request fails")
    func blockedReadEnds() async throws {
        for isClosed in [false, true] {
            let stage = try MemoryStage(["/a": .pattern(Self.length, .stall(after: nil))])
            let cache = try await stage.open()
            let reader = cache.media(for: stage.url()).reader()
            async let count = onThread {
                try withUnsafeTemporaryAllocation(byteCount: 10, alignment: 1) { try reader.read(into: $0, at: 0) }
            }
            // The read is blocked now.
            _ = try await stage.origin.log.first { _ in true }
            if isClosed { try await stage.flowing { await cache.close() } } else { reader.cancel() }
            do {
                _ = try await count
                Issue.record("read")
            } catch {
                #expect(isClosed ? (error as? CacheError)?.code == .closed : error is CancellationError)
            }
            #expect(throws: (any Error).self) {
                try withUnsafeTemporaryAllocation(byteCount: 10, alignment: 1) { try reader.read(into: $0, at: 0) }
            }
            stage.origin.release()
            try await stage.flowing { await cache.close() }
        }
        let stage = try MemoryStage(["/a": .pattern(Self.length, .status(404))])
        try await stage.session { (cache: MediaCache) async throws in
            let reader = cache.media(for: stage.url()).reader()
            let error = await #expect(throws: CacheError.self) {
                try await onThread {
                    try withUnsafeTemporaryAllocation(byteCount: 10, alignment: 1) { try reader.read(into: $0, at: 0) }
                }
            }
            #expect(error?.code == .originErrorStatus)
        }
    }
}

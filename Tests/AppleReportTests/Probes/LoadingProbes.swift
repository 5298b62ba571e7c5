import AVFoundation
import Foundation
import Spool
import SpoolAVFoundation

/// The probes of a player's loading requests.
enum LoadingProbes {
    static let all: [Probe] = [
        Probe(1, "Does media play if the two probe bytes are delivered?") { context in
            let (outcome, trace) = try await Playing.trace("front.m4a", in: context)
            return Observation(outcome, details: [trace.summary])
        },
        Probe(2, "Does media play if the information request ends without the two bytes?") { context in
            let (outcome, trace) = try await Playing.trace("front.m4a", in: context, deliversProbe: false)
            return Observation(outcome, details: [trace.summary])
        },
        Probe(3, "Which requests does the player send for each kind of file?", limit: 60) { context in
            var details: [String] = []
            for name in ["constant.mp3", "front.m4a", "end.m4a", "tone.wav", "long.wav"] {
                let (outcome, trace) = try await Playing.trace(name, in: context, seconds: 1)
                context.record(trace, of: name)
                details.append("\(name): \(outcome); \(trace.summary)")
            }
            return Observation("see the traces of \(details.count) files", details: details)
        },
        Probe(4, "Does the player repeat the request for type and length?") { context in
            let counts = context.recordedTraces.sorted { $0.key < $1.key }.map {
                "\($0.key): \($0.value.informationCount)"
            }
            guard !counts.isEmpty else { throw Unavailable("no requests were recorded") }
            return Observation("information requests: " + counts.joined(separator: ", "))
        },
        Probe(5, "Does isEntireLengthAvailableOnDemand change the requests?") { _ in
            var results: [String] = []
            for entireLength in [false, true] {
                guard let file = Fixtures.all["long.wav"] else { throw Unavailable("the file is missing") }
                let loader = RawLoader(file, .serves(entireLength: entireLength))
                let item = AVPlayerItem(asset: loader.asset("long.wav"))
                let player = Platform.player(item)
                let status = try await Playing.load(item)
                player.play()
                _ = try await wait(6) { item.currentTime().seconds > 1 }
                player.replaceCurrentItem(with: nil)
                let counts = loader.counts
                results.append(
                    "\(entireLength): \(status), \(counts.received) requests, \(counts.cancelled) cancelled")
            }
            return Observation(results.joined(separator: "; "))
        },
        Probe(6, "Does isPlayable return if a request fails with no or an empty content type?", limit: 50) { _ in
            var results: [String] = []
            for type in [nil, ""] {
                guard let file = Fixtures.all["tone.wav"] else { throw Unavailable("the file is missing") }
                let loader = RawLoader(file, .fails(type: type))
                let asset = loader.asset("tone.wav")
                let loading = Task { @MainActor in try await asset.load(.isPlayable) }
                let outcome =
                    switch await result(of: loading, within: 20) {
                    case .success(let isPlayable): "isPlayable is \(isPlayable)"
                    case .failure(let error): "throws \(Playing.describe(error))"
                    case nil: "does not end within 20 s"
                    }
                results.append((type == nil ? "without a type: " : "with an empty type: ") + outcome)
                withExtendedLifetime(loader) {}
            }
            return Observation(results.joined(separator: "; "))
        },
        Probe(7, "Does media without a length play?") { context in
            let cache = context.cache()
            let asset = CachingURLAsset(caching: context.origin.url("/endless/constant.mp3"), in: cache)
            asset.loader?.trace.start()
            let item = AVPlayerItem(asset: asset)
            let player = Platform.player(item)
            let status = try await Playing.load(item)
            let played = try await Playing.playToEnd(player, item)
            let events = asset.loader?.trace.trace.events.map(\.line) ?? []
            await cache.close()
            return Observation("\(status); \(played)", details: events)
        },
        Probe(8, "Which fields does the player send after a redirect?") { context in
            let received = context.origin.received("/endless/constant.mp3")
            guard !received.isEmpty else { throw Unavailable("the origin received no request") }
            return Observation(
                "\(received.count) requests",
                details: received.map {
                    "User-Agent: \($0.userAgent ?? "none"), Range: \($0.range ?? "none"), Cookie: \($0.cookie ?? "none")"
                })
        },
        Probe(9, "Is the asset of an item the one that it was created with?") { context in
            let cache = context.cache()
            let asset = CachingURLAsset(caching: context.origin.url("/media/tone.wav"), in: cache)
            let item = AVPlayerItem(asset: asset)
            let player = Platform.player(item)
            _ = try await Playing.load(item)
            let isSame = item.asset === asset
            player.replaceCurrentItem(with: nil)
            await cache.close()
            return Observation(isSame ? "yes" : "no, it is a different object")
        },
        Probe(16, "After how long does a request without a response fail?", limit: Platform.silentSeconds + 10) { _ in
            guard let file = Fixtures.all["tone.wav"] else { throw Unavailable("the file is missing") }
            let loader = RawLoader(file, .silent)
            let item = AVPlayerItem(asset: loader.asset("tone.wav"))
            let player = Platform.player(item)
            player.play()
            let start = ContinuousClock.now
            let hasEnded = try await wait(Platform.silentSeconds) { item.status == .failed }
            let seconds = Playing.text(start.duration(to: .now) / .seconds(1))
            player.replaceCurrentItem(with: nil)
            let counts = loader.counts
            let requests = "\(counts.received) requests, \(counts.cancelled) cancelled"
            return Observation(
                hasEnded
                    ? "after \(seconds) s: \(Playing.describe(item)); \(requests)"
                    : "not within \(seconds) s; \(requests)")
        },
    ]
}

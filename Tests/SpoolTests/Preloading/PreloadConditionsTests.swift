import Foundation
import SpoolStorage
import SpoolTesting
import Testing

@testable import Spool

/// Tests of preloads and downloads in Low Data Mode, in Low Power Mode and over expensive networks, on a simulated
/// system.
@Suite("Preload conditions", .timeLimit(.minutes(10)))
struct PreloadConditionsTests {
    private let system = SystemStateMonitor()
    private let cache: MediaCache
    private let origin = ScriptedUpstream(["/a": OriginResource(.pattern(PatternBytes(seed: 1, length: 300_000)))])
    private let source: MediaSource

    init() throws {
        cache = MediaCache(
            core: CacheCore(
                CacheContext(
                    directory: nil, upstream: origin, configuration: MediaCache.Configuration(),
                    fileSystem: SystemFileSystem(), clock: CacheClock(clock: ContinuousClock()),
                    executor: BlockingExecutor(), openFileLimit: 8, system: system)))
        source = MediaSource(url: try #require(URL(string: "http://origin.test/a")))
    }

    private func waits(_ preload: Preload) async {
        for await state in preload.states where state.phase == .waiting { return }
    }

    private func finishes(_ preload: Preload) async {
        var last: PreloadState.Phase?
        for await state in preload.states { last = state.phase }
        #expect(last == .finished)
    }

    @Test("E266: empty conditions allow only the normal system state, and `standard` rejects only Low Data Mode")
    func allows() {
        for isExpensive in [false, true] {
            for isConstrained in [false, true] {
                for isInLowPowerMode in [false, true] {
                    let state = SystemState(
                        isExpensive: isExpensive, isConstrained: isConstrained, isInLowPowerMode: isInLowPowerMode)
                    #expect(PreloadConditions().allow(state) == (state == SystemState()))
                    #expect(PreloadConditions.standard.allow(state) == !isConstrained)
                }
            }
        }
    }

    @Test("E266: by default, a preload waits during Low Data Mode, and later finishes even without its preloader")
    func lowDataMode() async throws {
        system.report { $0.isConstrained = true }
        let preloads = cache.preload([source], .entire)
        await waits(preloads[0])
        #expect(origin.log.exchanges.isEmpty && preloads[0].state.phase == .waiting)
        system.report { $0.isConstrained = false }
        await finishes(preloads[0])
        #expect(cache.storedByteCount == 300_000)
        await cache.close()
    }

    @Test("E266: a preload runs over an expensive network unless the conditions exclude it")
    func changedConditions() async throws {
        system.report { ($0.isExpensive, $0.isInLowPowerMode) = (true, true) }
        let preloader = Preloader(cache)
        preloader.conditions = PreloadConditions()
        #expect(!preloader.isAllowedBySystem)
        let preload = preloader.add(source, .entire)
        await waits(preload)
        #expect(origin.log.exchanges.isEmpty)
        preloader.isPaused = true
        preloader.conditions = .standard
        #expect(preloader.isAllowedBySystem && preload.state.phase == .waiting)
        preloader.isPaused = false
        await finishes(preload)
        system.report { $0.isConstrained = true }
        #expect(!preloader.isAllowedBySystem)
        preloader.conditions = nil
        #expect(preloader.isAllowedBySystem)
        await cache.close()
    }

    @Test("E266: downloads run on any network by default, and respect the conditions that the app sets")
    func downloads() async throws {
        system.report { $0.isConstrained = true }
        cache.downloads.conditions = .standard
        let download = try await cache.downloads.add(source)
        await waits(download.preload)
        #expect(origin.log.exchanges.isEmpty)
        cache.downloads.conditions = nil
        await finishes(download.preload)
        await cache.close()
    }

    @Test("E266: a preloader without preloads is released even while the system pauses it")
    func released() async throws {
        weak var work: PreloadWork?
        do {
            let preloader = Preloader(cache)
            work = preloader.work
            system.report { $0.isConstrained = true }
            #expect(!preloader.isAllowedBySystem)
        }
        #expect(work == nil)
        await cache.close()
    }
}

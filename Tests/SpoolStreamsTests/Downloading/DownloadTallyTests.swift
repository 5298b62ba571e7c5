import Synchronization
import Testing

@testable import SpoolStreams

@Suite struct DownloadTallyTests {
    @Test("E519: progress can be read and changed while an app's function is called with it")
    func reentrantReport() {
        let tally = Mutex<DownloadTally?>(nil)
        let reports = Mutex<[Int64]>([])
        let counted = DownloadTally { progress in
            reports.withLock { $0.append(progress.bytes) }
            let inner = tally.withLock { $0 }
            if progress.bytes == 1 { inner?.add(2) }
            #expect(inner?.progress.bytes == 3)
        }
        tally.withLock { $0 = counted }
        counted.add(1)
        #expect(reports.withLock { $0 } == [1, 3])
    }
}

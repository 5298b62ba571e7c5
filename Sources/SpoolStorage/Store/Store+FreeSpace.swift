import ByteRanges
import Foundation
import Synchronization

/// The room that others are to have on the volume.
extension Store {
    /// Looks at it now, and every ten seconds until the store is closed.
    func beginWatchingSpace() {
        guard minimumFreeSpace > 0 else { return }
        let timer = Task(executorPreference: executor.executor(for: .maintenance)) { [weak self, clock] in
            repeat {
                guard let self else { return }
                work.start(in: .maintenance) { [weak self] in await self?.leaveFreeSpace() }
            } while (try? await clock.sleep(.seconds(10))) != nil  // Cancelled: the store is being closed.
        }
        watching.withLock { $0 = timer }
    }

    /// Keeps no more than leaves the volume its free space, and evicts what does not; by what is free now.
    package func leaveFreeSpace() async {
        guard minimumFreeSpace > 0, !table.withLock({ $0.isClosed }) else { return }
        do {
            let free = try await executor.run(in: .maintenance) {
                try self.directory.space().free
            }
            let used = ledger.used
            let room = max(0, used.addingReportingOverflow(free - minimumFreeSpace).partialValue)
            spaceLimit.withLock { $0 = room }
            applyLimit()
            if room == 0 { warn(ofNoRoom: free) } else { isWarnedOfSpace.store(false, ordering: .relaxed) }
            if used > room { try await evict(to: room) }
        } catch let error as CacheError where error.code == .closed {
            // The next opening looks again.
        } catch {
            report(.warning("the volume's free space could not be seen to, and is tried again: \(error)"))
        }
    }

    /// Says once that nothing is kept.
    private func warn(ofNoRoom free: Int64) {
        guard !isWarnedOfSpace.exchange(true, ordering: .relaxed) else { return }
        report(
            .warning(
                "nothing is kept: \(free.counted("byte")) are free on the volume, of which \(minimumFreeSpace) are to stay free"
            ))
    }

    /// The least of the capacity and of what the volume's free space leaves.
    func applyLimit() {
        let limits = [configuredLimit.withLock { $0 }, spaceLimit.withLock { $0 }].compactMap { $0 }
        ledger.limit = limits.min()
    }
}

extension Store.Configuration {
    /// - Throws: ``CacheError``: `invalidArgument` where more is to stay free than the volume has.
    func checkFreeSpace(in directory: CacheDirectory) throws {
        guard minimumFreeSpace > 0 else { return }
        let size = try directory.space().size
        guard minimumFreeSpace < size else {
            throw CacheError(
                .invalidArgument,
                "\(minimumFreeSpace.counted("byte")) can't stay free on a volume of \(size): nothing would be kept")
        }
    }
}

import Foundation
import Synchronization

/// The most that is kept of a host, or of what has a tag.
extension Store {
    /// Evicts of what is above its quota, in the background.
    func holdQuotas() {
        for (number, quota) in quotas.enumerated() {
            let excess = order.withLock { ($0?.byteCount(ofQuota: number) ?? 0) - quota.byteCount }
            guard excess > 0 else { continue }
            work.start(in: .background) { [weak self] in
                guard let self else { return }
                await evictions.run(0) { await self.executor.run(in: .background) { self.evictExcess(of: number) } }
            }
        }
    }

    private func evictExcess(of number: Int) {
        do {
            try readOrder()
            let excess = order.withLock { ($0?.byteCount(ofQuota: number) ?? 0) - quotas[number].byteCount }
            guard excess > 0, !table.withLock({ $0.isClosed }) else { return }
            _ = try freeUnused(excess, upTo: excess, isLastResort: true, ofQuota: number)
        } catch {
            report(.warning("eviction failed: \(error)"))
        }
    }

    /// Reads the order at once where it will be needed soon: for quotas, or since the cache is nearly full.
    func readOrderAhead() {
        guard !quotas.isEmpty || isNearlyFull else { return }
        work.start(in: .background) { [weak self] in
            guard (try? self?.readOrder()) != nil else { return }  // If it can't be read, the next round tries.
            self?.holdQuotas()
        }
    }

    private var isNearlyFull: Bool {
        policy.makesRoom && ledger.limit.map { ledger.used > $0 - 2 * Self.margin(of: $0) } ?? false
    }
}

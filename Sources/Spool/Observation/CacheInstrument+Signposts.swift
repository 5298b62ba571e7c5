#if canImport(os)
import SpoolStorage
import Synchronization
import os

extension CacheInstrument {
    /// Returns an instrument that creates signposts for Xcode's Instruments, in the *os_signpost* track.
    ///
    /// Each request to an origin is an interval. Events mark first bytes, retries, evictions, failures, complete
    /// resources, and bytes that are not cached. URLs include only the scheme, host and path. The overhead is minimal
    /// while Instruments is not recording.
    ///
    /// - Parameters:
    ///   - subsystem: The subsystem of the signposts, by which Instruments filters them.
    ///   - category: The name of the track.
    public static func signposts(subsystem: String = "spool", category: String = "cache") -> CacheInstrument {
        let marks = Signposts(OSSignposter(subsystem: subsystem, category: category))
        return CacheInstrument { marks.note($0) }
    }
}

/// An object that emits signposts for the events of a cache.
private final class Signposts: Sendable {
    private let poster: OSSignposter
    private let running = Mutex<[InstrumentEvent.TransferName: OSSignpostIntervalState]>([:])

    init(_ poster: OSSignposter) { self.poster = poster }

    func note(_ moment: InstrumentEvent) {
        guard poster.isEnabled else {
            // A recording may end while transfers are running.
            if case .transferEnded(let transfer) = moment { take(transfer) }
            return
        }
        switch moment {
        case .transferBegan(let transfer, let redactedURL):
            let id = poster.makeSignpostID()
            let interval = poster.beginInterval("transfer", id: id, "\(redactedURL, privacy: .public)")
            running.withLock { $0[transfer] = interval }
        case .transferEnded(let transfer): take(transfer)
        case .firstBytes(let duration, let isStored, let redactedURL):
            let milliseconds = duration / .milliseconds(1)
            poster.emitEvent(
                "first bytes",
                "\(redactedURL, privacy: .public): \(isStored ? "stored" : "fetched", privacy: .public), \(milliseconds) ms"
            )
        case .event(let event): note(event)
        default: break
        }
    }

    private func take(_ transfer: InstrumentEvent.TransferName) {
        let interval = running.withLock { $0.removeValue(forKey: transfer) }
        if let interval { poster.endInterval("transfer", interval) }
    }

    private func note(_ event: CacheEvent) {
        switch event.kind {
        case .retrying(_, let cause):
            poster.emitEvent("retry", "\(event.redactedURL, privacy: .public): \(cause.message, privacy: .public)")
        case .evicted(let bytes): poster.emitEvent("evicted", "\(event.redactedURL, privacy: .public): \(bytes) bytes")
        case .completed: poster.emitEvent("complete", "\(event.redactedURL, privacy: .public)")
        case .notCached(let cause):
            poster.emitEvent("not cached", "\(event.redactedURL, privacy: .public): \(cause.message, privacy: .public)")
        case .failed(let error):
            poster.emitEvent("failed", "\(event.redactedURL, privacy: .public): \(error.message, privacy: .public)")
        default: break
        }
    }
}
#endif

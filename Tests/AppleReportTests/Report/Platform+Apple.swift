#if canImport(Darwin)
import AVFoundation
import Darwin
import Foundation
import Synchronization

/// The machine that the report describes, and the parts of the probes that differ on Apple's platforms.
enum Platform {
    /// The operating system and its version.
    static var system: String {
        let version = ProcessInfo.processInfo.operatingSystemVersion
        let number = "\(version.majorVersion).\(version.minorVersion).\(version.patchVersion)"
        #if os(macOS)
        return "macOS \(number)"
        #elseif os(tvOS)
        return "tvOS \(number)" + simulator
        #elseif os(visionOS)
        return "visionOS \(number)" + simulator
        #else
        return "iOS \(number)" + simulator
        #endif
    }

    private static var simulator: String {
        ProcessInfo.processInfo.environment["SIMULATOR_MODEL_IDENTIFIER"] == nil ? "" : " simulator"
    }

    /// The identifier of the model, such as `iPhone17,1`.
    static var model: String {
        if let model = ProcessInfo.processInfo.environment["SIMULATOR_MODEL_IDENTIFIER"] { return model }
        #if os(macOS)
        let name = "hw.model"
        #else
        let name = "hw.machine"
        #endif
        var size = 0
        guard sysctlbyname(name, nil, &size, nil, 0) == 0, size > 1 else { return "unknown" }
        var text = [UInt8](repeating: 0, count: size)
        guard sysctlbyname(name, &text, &size, nil, 0) == 0 else { return "unknown" }
        return String(decoding: text.prefix { $0 != 0 }, as: UTF8.self)
    }

    /// Does nothing, because the main queue uses the main thread on this platform.
    static func markMainQueue() {}

    /// Whether the caller runs on the main thread.
    static var isOnMainQueue: Bool { Thread.isMainThread }

    /// The notification of a discontinuity in an item's time.
    static let timeJumped = AVPlayerItem.timeJumpedNotification

    /// The AVFoundation implementation that plays media.
    static let avFoundation = "Apple's AVFoundation"

    /// The time for which a request without a response is observed, in seconds.
    static let silentSeconds = 130.0

    /// Returns a muted player.
    @MainActor static func player(_ item: AVPlayerItem? = nil) -> AVPlayer {
        let player = AVPlayer(playerItem: item)
        player.isMuted = true
        return player
    }

    /// Returns a muted queue player.
    @MainActor static func queuePlayer(_ items: [AVPlayerItem]) -> AVQueuePlayer {
        let player = AVQueuePlayer(items: items)
        player.isMuted = true
        return player
    }

    /// Records changes to the player's status in the log until the returned object is released.
    @MainActor static func observeStatus(of player: AVPlayer, in log: EventLog) throws -> AnyObject {
        player.observe(\.timeControlStatus) { @Sendable _, _ in log.add("time control status") }
    }

    /// Determines whether a cache's directory and its parent directory are excluded from backups.
    static func backupFlags(of directory: URL) throws -> Observation {
        func isExcluded(_ url: URL) throws -> Bool {
            try url.resourceValues(forKeys: [.isExcludedFromBackupKey]).isExcludedFromBackup ?? false
        }
        let own = try isExcluded(directory)
        let parent = try isExcluded(directory.deletingLastPathComponent())
        return Observation("the cache's directory: \(own), its parent: \(parent)")
    }

    /// Determines the protection classes of a cache's directory and of a file in it.
    static func protectionClasses(of directory: URL) throws -> Observation {
        #if os(macOS)
        throw Unavailable("macOS has no protection classes")
        #else
        func name(_ path: String) throws -> String {
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            return (attributes[.protectionKey] as? FileProtectionType)?.rawValue ?? "none"
        }
        let files = try FileManager.default.subpathsOfDirectory(atPath: directory.path)
        let details = try files.prefix(5).map { try "\($0): \(name(directory.appending(path: $0).path))" }
        return Observation("the cache's directory: \(try name(directory.path))", details: details)
        #endif
    }

    /// Deallocates a range of a file. Returns whether this succeeded.
    static func punchHole(in descriptor: Int32, _ range: Range<Int>) -> Bool {
        var hole = fpunchhole_t(
            fp_flags: 0, reserved: 0, fp_offset: off_t(range.lowerBound), fp_length: off_t(range.count))
        return fcntl(descriptor, F_PUNCHHOLE, &hole) == 0
    }

    /// Returns the offset of the first unallocated byte at or after an offset.
    static func seekHole(in descriptor: Int32, from offset: Int) -> Int {
        Int(lseek(descriptor, off_t(offset), SEEK_HOLE))
    }

    /// Measures the bytes that URLSession delivers after `suspend()`.
    static func suspendOvershoot(_ url: URL) async throws -> Observation {
        let delegate = SuspendedDelegate()
        let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
        let task = session.dataTask(with: url)
        task.resume()
        // The bytes are counted for a fixed time, because there is no event that indicates that the last bytes were
        // received.
        try await Task.sleep(for: .seconds(2))
        session.invalidateAndCancel()
        let (before, after) = delegate.counts
        return Observation("\(after) bytes were delivered after suspend(), and \(before) before it")
    }

    /// A delegate that suspends a task when it receives its first bytes, and counts the bytes that it receives later.
    private final class SuspendedDelegate: NSObject, URLSessionDataDelegate {
        private let state = Mutex((before: 0, after: 0))

        var counts: (before: Int, after: Int) { state.withLock { $0 } }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            let isFirst = state.withLock { state in
                if state.before > 0 {
                    state.after += data.count
                    return false
                }
                state.before = data.count
                return true
            }
            if isFirst { dataTask.suspend() }
        }
    }
}
#endif

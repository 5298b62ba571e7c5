#if os(Linux)
import AVFoundation
import CSystemFiles
import Foundation
import Glibc

/// The machine that the report describes, and the parts of the probes that differ on Linux.
enum Platform {
    /// The operating system.
    static let system = "Linux"

    /// The processor architecture.
    static var model: String {
        #if arch(x86_64)
        "x86_64"
        #elseif arch(arm64)
        "arm64"
        #else
        "other"
        #endif
    }

    private static let mainQueue = DispatchSpecificKey<Bool>()

    /// Marks the main queue, so that ``isOnMainQueue`` can recognize it.
    static func markMainQueue() { DispatchQueue.main.setSpecific(key: mainQueue, value: true) }

    /// Whether the caller runs on the main queue, which may be served by a thread other than the main thread.
    static var isOnMainQueue: Bool { DispatchQueue.getSpecific(key: mainQueue) == true }

    /// The notification of a discontinuity in an item's time.
    static let timeJumped = Notification.Name.AVPlayerItemTimeJumped

    /// The AVFoundation implementation that plays media.
    static let avFoundation = "Spool's own AVFoundation for Linux (libmpv)"

    /// The time for which a request without a response is observed, in seconds.
    static let silentSeconds = 15.0

    /// Returns a player without audio or video output, at normal speed.
    @MainActor static func player(_ item: AVPlayerItem? = nil) -> AVPlayer {
        let player = AVPlayer(playerItem: nil)
        player.headless = AVPlayer.HeadlessMode(speed: 1)
        player.replaceCurrentItem(with: item)
        return player
    }

    /// Returns a queue player without audio or video output, at normal speed.
    @MainActor static func queuePlayer(_ items: [AVPlayerItem]) -> AVQueuePlayer {
        let player = AVQueuePlayer(items: [])
        player.headless = AVPlayer.HeadlessMode(speed: 1)
        for item in items { player.insert(item, after: nil) }
        return player
    }

    /// Throws an error, because Linux has no key-value observing.
    @MainActor static func observeStatus(of player: AVPlayer, in log: EventLog) throws -> AnyObject {
        throw Unavailable("Linux has no key-value observing")
    }

    /// Throws an error, because Linux has no standard attribute for backups.
    static func backupFlags(of directory: URL) throws -> Observation { throw Unavailable("Linux has no such flag") }

    /// Throws an error, because Linux has no protection classes for files.
    static func protectionClasses(of directory: URL) throws -> Observation {
        throw Unavailable("Linux has no protection classes")
    }

    /// Deallocates a range of a file. Returns whether this succeeded.
    static func punchHole(in descriptor: Int32, _ range: Range<Int>) -> Bool {
        c_system_files_punch(descriptor, off_t(range.lowerBound), off_t(range.count)) == 0
    }

    /// Returns the offset of the first unallocated byte at or after an offset.
    static func seekHole(in descriptor: Int32, from offset: Int) -> Int {
        Int(c_system_files_next_hole(descriptor, off_t(offset)))
    }

    /// Throws an error, because URLSession on Linux sends a request again after `suspend()`.
    static func suspendOvershoot(_ url: URL) async throws -> Observation {
        throw Unavailable("FoundationNetworking sends a request again after suspend()")
    }
}
#endif

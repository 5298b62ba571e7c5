#if os(iOS)
import SpoolAVFoundation
import UIKit

// An example from docs/offline.md.

/// Continues downloads while the app is suspended.
@MainActor
private final class BackgroundDownloads {
    private let cache: MediaCache
    private let session: BackgroundURLSession

    init(_ cache: MediaCache) throws {
        self.cache = cache
        session = try BackgroundURLSession(identifier: "com.example.player.downloads")
    }

    /// Takes the downloads back from the session. Call this method at launch, and when the app becomes active.
    func appIsActive() async throws {
        try await cache.downloads.takeBack(from: session)
    }

    /// Hands the downloads over to the session. Call this method when the app enters the background.
    func appIsInBackground() async throws {
        let handover = Task { try await cache.downloads.handOver(to: session) }
        let time = UIApplication.shared.beginBackgroundTask { handover.cancel() }
        defer { UIApplication.shared.endBackgroundTask(time) }
        _ = try await handover.value
    }

    /// Handles the session's events. Call this method from
    /// `application(_:handleEventsForBackgroundURLSession:completionHandler:)`.
    func systemHasEvents(for identifier: String, completion: @escaping @MainActor @Sendable () -> Void) {
        session.handleEvents(forSession: identifier) {
            Task {
                // If this fails, the downloaded files stay in the session.
                _ = try? await self.cache.downloads.handOver(to: self.session)
                completion()
            }
        }
    }
}
#endif

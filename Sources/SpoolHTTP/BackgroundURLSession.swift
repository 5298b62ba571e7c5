#if canImport(Darwin) && !StaticLinking
public import Foundation
import HTTPTypes
public import Spool
import Synchronization

/// A background session of URLSession, which continues downloads while the app is suspended or not running.
///
/// Create one object for each identifier, at every launch, and retain it for the life of the app. Pass it to
/// `Downloads.handOver(to:)` when the app enters the background, and to `Downloads.takeBack(from:)` when the app
/// becomes active. In the app delegate, forward the system's callback to `handleEvents(forSession:completion:)`.
///
/// Over HTTP/1.1, only one transfer at a time is in progress for each host. The system stores the URL and the header
/// fields of a transfer, including credentials, until the transfer has ended, and follows redirects. Received files are
/// not encrypted until the cache has stored them. Requests are restricted to the networks of
/// `HTTPUpstream.Configuration.networkAccess(for: .download)` and of `Downloads.conditions`.
public final class BackgroundURLSession: BackgroundTransferSession {
    private let configuration: HTTPUpstream.Configuration
    private let folder: BackgroundTransferFolder
    private let delegate: Delegate
    private let session: URLSession
    private let identifier: String

    /// Creates a session, or reconnects to its transfers from previous launches.
    ///
    /// - Parameters:
    ///   - identifier: The identifier of the background session, such as `com.example.app.downloads`.
    ///   - configuration: The allowed networks, the value of `User-Agent`, and the cookies. The timeouts do not apply.
    ///   - directory: The folder for received files, which should not contain other files. The default, `nil`, uses a
    ///     folder in `Application Support`, or in the caches folder on tvOS. The folder is excluded from backups, and
    ///     its files can be written while the device is locked.
    /// - Throws: The system's error, if the folder can't be created.
    public init(
        identifier: String, _ configuration: HTTPUpstream.Configuration = .init(), directory: URL? = nil
    ) throws {
        folder = try BackgroundTransferFolder(directory ?? Self.directory(for: identifier))
        self.identifier = identifier
        self.configuration = configuration
        delegate = Delegate(folder)
        let settings = URLSessionConfiguration.background(withIdentifier: identifier)
        settings.sessionSendsLaunchEvents = true
        settings.isDiscretionary = false
        settings.httpMaximumConnectionsPerHost = 1
        settings.httpCookieStorage = nil
        settings.httpShouldSetCookies = false
        settings.urlCache = nil
        settings.urlCredentialStorage = nil
        settings.requestCachePolicy = .reloadIgnoringLocalCacheData
        settings.tlsMinimumSupportedProtocolVersion = .TLSv12
        session = URLSession(configuration: settings, delegate: delegate, delegateQueue: nil)
    }

    private static func directory(for identifier: String) throws -> URL {
        #if os(tvOS)
        // Apps can't write to Application Support on tvOS.
        let folder = FileManager.SearchPathDirectory.cachesDirectory
        #else
        let folder = FileManager.SearchPathDirectory.applicationSupportDirectory
        #endif
        let support = try FileManager.default.url(
            for: folder, in: .userDomainMask, appropriateFor: nil, create: true)
        // The app chooses the identifier, which may contain a slash.
        let name = identifier.replacingOccurrences(of: "/", with: "-")
        return support.appendingPathComponent("SpoolBackground", isDirectory: true).appendingPathComponent(
            name, isDirectory: true)
    }

    /// Starts a download task; see `BackgroundTransferSession`.
    ///
    /// - Throws: ``/Spool/UpstreamError`` with code `other` if the URL is neither `http` nor `https`.
    public func start(_ request: BackgroundTransferRequest) async throws {
        guard ["http", "https"].contains(request.url.scheme?.lowercased()) else {
            throw UpstreamError(.other, "a background session supports only http and https")
        }
        var message = URLRequest(url: request.url)
        message.httpShouldHandleCookies = false
        var access = configuration.networkAccess(for: .download)
        if request.conditions?.allowsExpensiveNetworks == false { access.remove(.expensive) }
        if request.conditions?.allowsConstrainedNetworks == false { access.remove(.constrained) }
        message.restrict(to: access, purpose: .download, in: session)
        for field in request.headerFields { message.addValue(field.value, forHTTPHeaderField: field.name.rawName) }
        if request.headerFields[.userAgent] == nil {
            message.setValue(
                configuration.userAgent ?? "Spool/\(SpoolVersion.current)", forHTTPHeaderField: "User-Agent")
        }
        if request.headerFields[.cookie] == nil, let cookies = configuration.cookies?(request.url) {
            message.setValue(cookies, forHTTPHeaderField: "Cookie")
        }
        let task = session.downloadTask(with: message)
        task.taskDescription = request.identifier
        task.resume()
    }

    /// Returns the transfers of the session, which are its unfinished tasks and the received files.
    public func transfers() async -> [BackgroundTransfer] {
        // The tasks are read first. A task that finishes in between is then in both lists, rather than in neither.
        let running = await deliveredTasks().filter { $0.state == .running || $0.state == .suspended }
        let ended = folder.transfers
        let known = Set(ended.map(\.identifier))
        let waiting = Set(running.compactMap(\.taskDescription)).subtracting(known)
        return ended + waiting.map { BackgroundTransfer(identifier: $0, state: .running) }
    }

    /// Returns the tasks of the session. After a launch, waits up to two seconds for the system to deliver the files
    /// that were received while the app was not running.
    private func deliveredTasks() async -> [URLSessionTask] {
        var tasks = await session.allTasks
        for _ in 0..<20 where tasks.contains(where: { $0.state == .completed }) {
            guard (try? await Task.sleep(for: .milliseconds(100))) != nil else { break }  // Fails after cancellation.
            tasks = await session.allTasks
        }
        return tasks
    }

    /// Cancels the transfer, and deletes its received file.
    public func remove(_ identifier: String) async {
        for task in await session.allTasks where task.taskDescription == identifier { task.cancel() }
        folder.remove(identifier)
    }

    /// Handles the call to `application(_:handleEventsForBackgroundURLSession:completionHandler:)`.
    ///
    /// - Parameters:
    ///   - identifier: The session identifier from the call.
    ///   - completion: A function that is called on the main thread when all received files are in the session's
    ///     folder. To store them and start more transfers, call `Downloads.handOver(to:)` in this function, and call
    ///     the system's handler afterwards.
    /// - Returns: `false` if the call is for a different session. `completion` is then not called.
    @discardableResult
    public func handleEvents(
        forSession identifier: String, completion: @escaping @MainActor @Sendable () -> Void
    ) -> Bool {
        guard identifier == self.identifier else { return false }
        delegate.setCompletion(completion)
        return true
    }
}

/// A delegate that moves received files into the folder before URLSession deletes them.
private final class Delegate: NSObject, URLSessionDownloadDelegate {
    private struct State {
        var completion: (@MainActor @Sendable () -> Void)?
        /// Whether all events were delivered before there was a completion handler.
        var hasFinishedEvents = false
    }

    private let folder: BackgroundTransferFolder
    private let state = Mutex(State())

    init(_ folder: BackgroundTransferFolder) { self.folder = folder }

    func setCompletion(_ completion: @escaping @MainActor @Sendable () -> Void) {
        let isDue = state.withLock { state in
            if state.hasFinishedEvents {
                state.hasFinishedEvents = false
                return true
            }
            state.completion = completion
            return false
        }
        if isDue { Task { @MainActor in completion() } }
    }

    /// Records that events are being delivered, so that the next completion handler waits until all of them have been
    /// delivered.
    private func receivedEvent() { state.withLock { $0.hasFinishedEvents = false } }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
        receivedEvent()
        guard let identifier = downloadTask.taskDescription else { return }
        guard let response = downloadTask.response as? HTTPURLResponse, let head = response.head else {
            folder.fail(identifier, UpstreamError(.malformedResponse, "the response is not valid HTTP"))
            return
        }
        try? folder.receive(location, head, for: identifier)  // The error is recorded with the transfer.
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        receivedEvent()
        guard let error, let identifier = task.taskDescription, (error as? URLError)?.code != .cancelled else { return }
        let name = task.originalRequest?.url?.nameForMessages ?? "a download"
        folder.fail(identifier, UpstreamError(ofURLSession: error, name, isInBody: task.response != nil))
    }

    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
        let completion = state.withLock { state in
            let completion = state.completion.take()
            state.hasFinishedEvents = completion == nil
            return completion
        }
        if let completion { Task { @MainActor in completion() } }
    }
}
#endif

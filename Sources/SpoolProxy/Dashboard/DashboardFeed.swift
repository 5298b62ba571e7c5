#if Proxy
import Foundation
import NIOCore
import Spool
import Synchronization

/// The source of all data for the live pages: the log, the history, and the streams of events.
///
/// The difference since the last message is computed once for all pages, at most five times a second, and only while a
/// page is open. No lock of the cache is held during the computation. The feed does not change the cache.
final class DashboardFeed: Sendable {
    private struct Client {
        let queue: EventClient
        /// The network of the client; see ``ProxyClient/network``.
        let network: String
        /// The number of the last log entry that the page had received before it connected, or `nil` after its first
        /// update.
        var resumesAfter: Int?
        /// The time of the last message.
        var lastMessage: Duration
    }

    /// The most recent entries, and the most recent errors, warnings and waits, which stay longer.
    struct Log {
        private var recent = RecentItems<DashboardLogEntry>(limit: 1000)
        private var problems: [DashboardLogEntry] = []
        private static let problemLimit = 100

        var nextID: Int { recent.nextID }
        var firstID: Int { recent.firstID }

        mutating func append(_ entry: DashboardLogEntry) {
            recent.append(entry)
            guard entry.isProblem else { return }
            problems.append(entry)
            if problems.count > Self.problemLimit { problems.removeFirst() }
        }

        /// Returns the entries after the one with this number, oldest first. Only problems are left of older entries.
        func after(_ id: Int) -> [DashboardLogEntry] {
            let entries = recent.after(id)
            let first = entries.first?.id ?? nextID
            return problems.filter { $0.id > id && $0.id < first } + entries
        }
    }

    private struct State {
        var history: DashboardHistory
        var log = Log()
        /// The number of the last wait in ``log``.
        var lastWait: Int
        var clients: [Int: Client] = [:]
        var nextClient = 0
        /// The tasks that run until the server stops, or `nil` before it starts.
        var tasks: [Task<Void, Never>]?
        /// The task that sends updates, while a page is open.
        var updates: Task<Void, Never>?
        var isEnded = false

        /// Removes and returns the oldest stream of the network that has the most streams. This method is called before
        /// another client's stream is added.
        mutating func takeOldest(before network: String) -> EventClient? {
            var counts: [String: Int] = [:]
            for client in clients.values { counts[client.network, default: 0] += 1 }
            counts[network]? += 1
            func rank(_ number: Int, _ client: Client) -> (Int, Int, Int) {
                (counts[client.network] ?? 0, client.network == network ? 1 : 0, -number)
            }
            let oldest = clients.max { rank($0.key, $0.value) < rank($1.key, $1.value) }
            return oldest.flatMap { clients.removeValue(forKey: $0.key)?.queue }
        }
    }

    /// The maximum number of open streams of events. When another stream is opened, the oldest stream of the client
    /// with the most streams ends.
    static let clientLimit = 64
    /// The shortest time between two messages to a page.
    static let interval = Duration.milliseconds(200)
    /// The time without messages after which a page receives a comment.
    static let silence = Duration.seconds(15)

    let cache: MediaCache
    let metrics: ProxyMetrics
    /// The time at which the server was created.
    let started: Date
    /// The identifier of this run of the server, which is part of the identifiers of its events.
    let run = String(UInt64.random(in: .min ... .max), radix: 36)
    private let clock: any Clock<Duration>
    private let now: @Sendable () -> Date
    private let state: Mutex<State>
    /// The number of changes that no event reports, such as pins.
    private let changes = Atomic<Int>(0)

    init(
        cache: MediaCache, metrics: ProxyMetrics, clock: any Clock<Duration>, now: @escaping @Sendable () -> Date
    ) {
        (self.cache, self.metrics, self.clock, self.now) = (cache, metrics, clock, now)
        started = now()
        state = Mutex(
            State(history: DashboardHistory(.init(), at: started), lastWait: cache.traffic.lastIDs.wait))
    }

    // MARK: - Lifecycle

    /// Starts recording the log and the history. Further calls have no effect.
    func start() {
        let isFirst = state.withLock { state in
            guard state.tasks == nil, !state.isEnded else { return false }
            state.tasks = []
            return true
        }
        guard isFirst else { return }
        let events = cache.eventsWithoutStored()
        let tasks = [
            Task(executorPreference: cache.readingExecutor) { for await event in events { self.record(event) } },
            Task(executorPreference: cache.readingExecutor) { await self.recordHistory() },
        ]
        let isEnded = state.withLock { state in
            if !state.isEnded { state.tasks = tasks }
            return state.isEnded
        }
        if isEnded { for task in tasks { task.cancel() } }
    }

    /// Ends all streams and tasks.
    func end() {
        let (tasks, clients) = state.withLock { state in
            state.isEnded = true
            defer { (state.tasks, state.updates, state.clients) = ([], nil, [:]) }
            return ((state.tasks ?? []) + (state.updates.map { [$0] } ?? []), Array(state.clients.values))
        }
        for task in tasks { task.cancel() }
        for client in clients { client.queue.end() }
    }

    /// Records a change that no event reports. The next update reads the catalog again.
    func recordChange() { changes.add(1, ordering: .relaxed) }

    /// Adds an entry to the log for a preload that was cancelled because its resource is being removed.
    func record(cancelledPreload source: MediaSource) {
        let (key, time) = (cache.key(for: source), now())
        state.withLock { state in
            state.log.append(
                DashboardLogEntry(cancelledPreload: source.redactedURL, key, id: state.log.nextID, at: time))
        }
    }

    private func record(_ event: CacheEvent) {
        let time = now()
        state.withLock { state in
            if let entry = DashboardLogEntry(event, id: state.log.nextID, at: time) { state.log.append(entry) }
        }
    }

    /// Adds the waits since the last call to the log.
    private func collectWaits() {
        let waits = cache.traffic.waits(after: state.withLock { $0.lastWait })
        state.withLock { state in
            // Another task may have added some of these waits.
            for wait in waits where wait.id > state.lastWait {
                state.lastWait = wait.id
                state.log.append(DashboardLogEntry(wait, id: state.log.nextID))
            }
        }
    }

    // MARK: - History

    private func recordHistory() async {
        while (try? await clock.sleep(for: DashboardHistory.interval)) != nil {  // Sleeping fails only on cancellation.
            let sums = sums
            let time = now()
            collectWaits()
            state.withLock { $0.history.add(sums, at: time) }
        }
    }

    private var sums: DashboardHistory.Sums {
        let (statistics, counts) = (cache.statistics, metrics.counts)
        // Requests for the page itself, and failures, are neither hits nor misses.
        let results: [ProxyMetrics.Result] = [.hit, .miss, .partial, .stale]
        return DashboardHistory.Sums(
            servedBytes: statistics.bytesServed, savedBytes: statistics.bytesFromCache,
            originBytes: statistics.bytesFromOrigin, requests: results.reduce(0) { $0 + (counts.requests[$1] ?? 0) },
            hits: counts.requests[.hit] ?? 0, errors: cache.activity.counts.errors.values.reduce(0, +))
    }

    /// The samples of the last hour.
    var history: DashboardHistoryReport {
        let seconds = Int(DashboardHistory.interval / .seconds(1))
        return DashboardHistoryReport(intervalSeconds: seconds, samples: state.withLock { $0.history.samples })
    }

    /// Returns the current totals.
    func totals(_ activity: CacheActivity, fileCount: Int) -> DashboardTotals {
        let history = state.withLock { $0.history }
        return DashboardTotals(cache, activity, metrics.counts, fileCount: fileCount) {
            history.savedBytesToday(of: $0)
        }
    }

    // MARK: - Streams of events

    /// Returns a stream of events, which starts with a `hello`.
    ///
    /// If too many streams are open, the oldest stream of the client with the most streams ends. Therefore, a client
    /// that only opens streams cannot prevent other clients from using the page.
    ///
    /// - Parameters:
    ///   - lastID: The identifier of the last event that the page has received, or `nil` if there is none.
    ///   - network: The network of the client; see ``ProxyClient/network``.
    /// - Throws: `RequestFailure` with status 503 if the server is shutting down.
    func events(after lastID: String?, for network: String) throws -> BodyStream {
        start()
        collectWaits()
        let (newest, oldest) = state.withLock { ($0.log.nextID - 1, $0.log.firstID) }
        // The first request from a page contains the identifier 0.
        let entry = lastID == nil || lastID == "0" ? 0 : EventIdentifier(lastID ?? "").flatMap { entryNumber(of: $0) }
        // Entries from an earlier run of the server are unknown, so the page must load everything again.
        let known = entry.flatMap { (0...newest).contains($0) ? $0 : nil }
        let hello = DashboardHello(
            version: SpoolVersion.current, started: started, lastID: newest,
            isComplete: known.map { $0 + 1 >= oldest } ?? false)
        let client = EventClient()
        // A new stream always has space for the first message.
        _ = client.send(try ServerSentEvent.message("hello", hello, id: nil, start: "retry: 1000\n"))
        let (number, ended) = try state.withLock { state in
            guard !state.isEnded else { throw RequestFailure(503, "the server is shutting down", retryAfter: 5) }
            let ended = state.clients.count < Self.clientLimit ? nil : state.takeOldest(before: network)
            state.nextClient += 1
            state.clients[state.nextClient] = Client(
                queue: client, network: network, resumesAfter: known ?? 0, lastMessage: .zero)
            if state.updates == nil {
                state.updates = Task(executorPreference: cache.readingExecutor) { await self.sendUpdates() }
            }
            return (state.nextClient, ended)
        }
        if let ended {
            ended.end(with: try ServerSentEvent.message("end", DashboardEnd.limit, id: nil, start: "retry: 10000\n"))
        }
        return BodyStream(isEndless: true, onStart: client.start) { write in
            defer { self.remove(number) }
            while let message = await client.next() { try await write(message) }
        }
    }

    /// Returns the entry number in an event's identifier, or `nil` if the event is from another run of the server.
    private func entryNumber(of event: EventIdentifier) -> Int? { event.run == run ? event.entry : nil }

    private func text(ofID entry: Int) -> String { EventIdentifier(run: run, entry: entry).description }

    /// The number of the last entry in the log.
    var lastLogID: Int { state.withLock { $0.log.nextID - 1 } }

    /// The number of open streams.
    var clientCount: Int { state.withLock { $0.clients.count } }

    private func remove(_ number: Int) {
        state.withLock { state in
            state.clients[number]?.queue.end()
            state.clients[number] = nil
        }
    }

    /// Sends updates until no page is open.
    private func sendUpdates() async {
        var source = DashboardChanges(cache, lastEntry: state.withLock { $0.log.nextID - 1 })
        var previous: DashboardUpdate?
        var elapsed = Duration.zero
        while true {
            guard (try? await clock.sleep(for: Self.interval)) != nil else { return }  // The server is shutting down.
            elapsed += Self.interval
            collectWaits()
            let activity = cache.activity
            await source.read(changeCount: changes.load(ordering: .relaxed), activity)
            let entries = state.withLock { $0.log.after(source.lastEntry) }
            let totals = totals(activity, fileCount: source.fileCount)
            let update = source.update(at: now(), totals, activity, entries)
            let isNew = update.differs(from: previous)
            previous = update
            guard send(isNew ? update : nil, or: update, at: elapsed) else { return }
        }
    }

    /// Sends an update to all pages.
    ///
    /// - Parameters:
    ///   - update: The update, or `nil` if nothing changed.
    ///   - current: The current state, for pages that get their first update.
    /// - Returns: Whether a page is open. If not, the caller stops sending updates.
    private func send(_ update: DashboardUpdate?, or current: DashboardUpdate, at elapsed: Duration) -> Bool {
        let (clients, log) = state.withLock { state -> ([Int: Client], Log) in
            if state.clients.isEmpty { state.updates = nil }
            return (state.clients, state.log)
        }
        guard !clients.isEmpty else { return false }
        let lastID = current.log.last?.id ?? log.nextID - 1
        var shared: ByteBuffer?
        for (number, client) in clients {
            var message: ByteBuffer?
            if let after = client.resumesAfter {
                var own = current
                own.log = log.after(after)
                // An update can always be encoded.
                message = try? ServerSentEvent.message("update", own, id: text(ofID: own.log.last?.id ?? lastID))
            } else if let update {
                if shared == nil {
                    // An update can always be encoded.
                    shared = try? ServerSentEvent.message("update", update, id: text(ofID: lastID))
                }
                message = shared
            } else if elapsed - client.lastMessage >= Self.silence {
                message = ServerSentEvent.comment
            }
            guard let message else { continue }
            if client.queue.send(message) {
                state.withLock { state in
                    state.clients[number]?.resumesAfter = nil
                    state.clients[number]?.lastMessage = elapsed
                }
            } else {
                remove(number)
            }
        }
        return true
    }
}
#endif

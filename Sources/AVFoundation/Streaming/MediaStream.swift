import Dispatch
import Foundation
import Synchronization

/// The bytes of one player item, which connects blocking reads by the demuxer with loading requests to the delegate.
///
/// A ``RequestPattern`` makes the decisions. Reads run on libmpv's threads, one at a time. Bytes are received on the
/// delegate's thread. The methods that seek and close may be called from any thread.
final class MediaStream: Sendable {
    /// The error that ended the stream, if any.
    var failure: (any Error)? { state.withLock { $0.failure } }

    private let core: ResourceLoaderCore
    private let url: URL
    private let requestTimeout: Double?
    private let state: Mutex<State>

    private struct State {
        var pattern: any RequestPattern
        var records: [Int: LoadingRequestRecord] = [:]
        /// The current reader.
        var reader: StreamReader?
        var failure: (any Error)?
    }

    private enum Step {
        case start(LoadingRequestRecord, token: Int)
        case cancel(LoadingRequestRecord)
        case wake(StreamReader)
    }

    init(core: ResourceLoaderCore, url: URL, policy: LoadingPolicy = .init()) {
        self.core = core
        self.url = url
        requestTimeout = policy.requestTimeout
        let pattern: any RequestPattern =
            policy.isConcurrent ? ConcurrentPattern(policy: policy) : LoadingPattern(policy: policy)
        state = Mutex(State(pattern: pattern))
    }

    var contentInformation: ContentInformation? { state.withLock { $0.pattern.contentInformation } }
    /// Whether the bytes have ended before the stated length.
    var endsEarly: Bool {
        state.withLock { state in
            guard let length = state.pattern.contentInformation?.contentLength else { return false }
            return state.pattern.endOfResource.map { $0 < length } ?? false
        }
    }
    var length: Int64? { state.withLock { $0.pattern.endOfResource } }

    // MARK: The demuxer's side, through its reader

    func open(for reader: StreamReader) -> Bool {
        perform(
            state.withLock { state -> [Step] in
                // This check holds the lock that `close` also acquires, so that a call to `close` cannot be missed.
                guard !reader.isClosed else { return [] }
                state.reader = reader
                let actions = state.pattern.open()
                return steps(for: actions, &state)
            })
        return wait(reader) { ($0.opening(), []) } == .bytes(Data())
    }

    func read(for reader: StreamReader, into target: UnsafeMutableRawBufferPointer) -> Int? {
        switch wait(reader, for: { $0.read(limit: target.count) }) {
        case .bytes(let data): return data.copyBytes(to: target)
        case .endOfResource, .interrupted, .wait: return 0
        case .failed: return nil
        }
    }

    func seek(to offset: Int64, for reader: StreamReader) {
        state.withLock { if $0.reader === reader { $0.pattern.seek(to: offset) } }
    }

    // MARK: The player's side

    /// Records that the player is about to send a seek to libmpv.
    func expectSeek() { state.withLock { $0.pattern.expectSeek() } }

    /// Ends a read that is waiting for bytes that the player no longer needs because of a seek. Returns `true` if there
    /// was such a read.
    func interrupt() -> Bool {
        let (isReleased, steps) = state.withLock { state in
            let (isReleased, actions) = state.pattern.interrupt()
            return (isReleased, self.steps(for: actions, &state))
        }
        perform(steps)
        return isReleased
    }

    /// Whether a read is still waiting even though a seek should have ended it.
    var isReadStuck: Bool { state.withLock { $0.pattern.isReadStuck } }

    /// Whether the demuxer is waiting for bytes.
    var isReadWaiting: Bool { state.withLock { $0.pattern.isReadWaiting } }

    /// Sets the duration of the media, whose bit rate determines the read-ahead. `secondsAhead` is the app's
    /// preference, or `nil` if the player chooses.
    func learned(duration: Double, secondsAhead: Double?) {
        state.withLock { state in
            guard let length = state.pattern.endOfResource, duration > 0 else { return }
            state.pattern.learned(bytesPerSecond: Double(length) / duration, secondsAhead: secondsAhead)
        }
    }

    /// Loads the start of the resource before the first read.
    func prebuffer() { feed { $0.prebuffer() } }

    /// Abandons the open requests, unless another reader now uses the stream. Bytes that are delivered later are
    /// discarded. The requests are cancelled only if `cancelling` is `true`.
    func close(_ reader: StreamReader, cancelling: Bool) {
        let (records, steps) = state.withLock { state -> ([LoadingRequestRecord], [Step]) in
            guard state.reader == nil || state.reader === reader else { return ([], []) }
            let records = Array(state.records.values)
            state.records = [:]
            let actions = state.pattern.close()
            defer { state.reader = nil }
            return (records, self.steps(for: actions, &state))
        }
        for record in records {
            record.abandon()
            if cancelling { record.cancel() }
        }
        perform(steps)
    }

    // MARK: Actions

    private func wait(
        _ reader: StreamReader, for read: (inout any RequestPattern) -> (LoadingReadResult, [LoadingAction])
    ) -> LoadingReadResult {
        while true {
            let (result, steps) = state.withLock { state -> (LoadingReadResult, [Step]) in
                guard state.reader === reader else { return (.failed, []) }
                let (result, actions) = read(&state.pattern)
                return (result, self.steps(for: actions, &state))
            }
            perform(steps)
            guard result == .wait else { return result }
            reader.wait()
        }
    }

    private func feed(_ input: (inout any RequestPattern) -> [LoadingAction]) {
        perform(
            state.withLock { state in
                let actions = input(&state.pattern)
                return steps(for: actions, &state)
            })
    }

    private func steps(for actions: [LoadingAction], _ state: inout State) -> [Step] {
        actions.compactMap { action in
            switch action {
            case .requestInformation(let token):
                return .start(
                    makeRecord(token, .contentInformation, offset: 0, length: 2, toEnd: false, &state), token: token)
            case .askData(let token, let offset, let length, let toEnd):
                return .start(
                    makeRecord(token, .data, offset: offset, length: length, toEnd: toEnd, &state), token: token)
            case .cancel(let token):
                return state.records.removeValue(forKey: token).map(Step.cancel)
            case .wakeReader:
                return state.reader.map(Step.wake)
            }
        }
    }

    private func makeRecord(
        _ token: Int, _ kind: AVAssetResourceLoader.LoggedRequest.Kind, offset: Int64, length: Int64?, toEnd: Bool,
        _ state: inout State
    ) -> LoadingRequestRecord {
        let record = LoadingRequestRecord(
            core: core, url: url, kind: kind, offset: offset, length: length, toEnd: toEnd
        ) { [weak self] event in self?.receive(event, token: token) }
        state.records[token] = record
        return record
    }

    private func receive(_ event: LoadingRequestEvent, token: Int) {
        switch event {
        case .data(let data):
            feed { $0.received(data, token: token) }
        case .finished(let information):
            state.withLock { $0.records[token] = nil }
            feed { $0.finished(token: token, information: information) }
        case .failed(let error):
            let steps = state.withLock { state in
                state.records[token] = nil
                let actions = state.pattern.failed(token: token)
                if state.pattern.hasFailed, state.failure == nil { state.failure = error }
                return self.steps(for: actions, &state)
            }
            perform(steps)
        }
    }

    /// Fails the request if it does not receive bytes before the timeout, as a player does.
    private func watch(_ record: LoadingRequestRecord, token: Int, delivered: Int64, timeout: Double) {
        DispatchQueue.global().asyncAfter(deadline: .now() + timeout) { [weak self, weak record] in
            guard let self, let record, record.phase == .made || record.phase == .open else { return }
            guard record.delivered == delivered else {
                return watch(record, token: token, delivered: record.delivered, timeout: timeout)
            }
            record.abandon()
            receive(.failed(URLError(.timedOut)), token: token)
        }
    }

    private func perform(_ steps: [Step]) {
        for step in steps {
            switch step {
            case .start(let record, let token):
                record.start()
                if let requestTimeout { watch(record, token: token, delivered: 0, timeout: requestTimeout) }
            case .cancel(let record): record.cancel()
            case .wake(let reader): reader.wake()
            }
        }
    }
}

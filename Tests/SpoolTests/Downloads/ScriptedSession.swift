import Foundation
import HTTPTypes
import SpoolTesting
import Synchronization

@testable import Spool

/// A background session of a simulated system, which a test advances. It outlives the caches that use it, and transfers
/// one chunk at a time from an origin in memory.
final class ScriptedSession: BackgroundTransferSession {
    /// A deviation from a correct transfer.
    enum Fault: CaseIterable {
        /// The origin sends the whole resource with status 200.
        case whole
        case otherValidator
        case otherRange
        /// The file is shorter than the response states.
        case truncated
        /// The system loses the transfer.
        case lost
        case failed
        case busy
        case unauthorized
    }

    private struct State {
        var waiting: [BackgroundTransferRequest] = []
        var started: [BackgroundTransferRequest] = []
        var wasted: Int64 = 0
        /// The numbers of bytes that half-completed transfers have received.
        var halves: [String: Int64] = [:]
    }

    private let origin: any Upstream
    private let folder: BackgroundTransferFolder
    private let scratch: ScratchDirectory
    private let state = Mutex(State())

    init(_ origin: any Upstream) throws {
        self.origin = origin
        scratch = try ScratchDirectory()
        folder = try BackgroundTransferFolder(URL(fileURLWithPath: scratch.file("received")))
    }

    /// All requests that were started, in order.
    var started: [BackgroundTransferRequest] { state.withLock { $0.started } }
    /// The requests whose transfers have not ended.
    var waiting: [BackgroundTransferRequest] { state.withLock { $0.waiting } }
    /// The number of received bytes that can't be stored, or that this simulation has requested again.
    var wasted: Int64 { state.withLock { $0.wasted } }

    func start(_ request: BackgroundTransferRequest) async throws {
        state.withLock { state in
            state.waiting.append(request)
            state.started.append(request)
        }
    }

    func transfers() async -> [BackgroundTransfer] {
        folder.transfers + waiting.map { BackgroundTransfer(identifier: $0.identifier, state: .running) }
    }

    func remove(_ identifier: String) async {
        state.withLock { state in
            state.waiting.removeAll { $0.identifier == identifier }
            state.halves[identifier] = nil
        }
        folder.remove(identifier)
    }

    /// Completes the first transfers.
    func finish(_ count: Int = .max, _ fault: Fault? = nil) async throws {
        for _ in 0..<count {
            let next = state.withLock { $0.waiting.isEmpty ? nil : $0.waiting.removeFirst() }
            guard let next else { return }
            try await finish(next, fault)
        }
    }

    private func finish(_ request: BackgroundTransferRequest, _ fault: Fault?) async throws {
        var message = UpstreamRequest(url: request.url, headerFields: request.headerFields)
        switch fault {
        case .lost: return
        case .failed: return folder.fail(request.identifier, UpstreamError(.unreachable, "the network was lost"))
        case .busy: return try receive(request, HTTPResponse(status: .serviceUnavailable), Data())
        case .unauthorized: return try receive(request, HTTPResponse(status: .unauthorized), Data())
        case .whole: message.headerFields[.range] = nil
        case .otherValidator, .otherRange, .truncated, nil: break
        }
        // This simulation requests all bytes of the chunk again. A real system does not.
        state.withLock { $0.wasted += $0.halves.removeValue(forKey: request.identifier) ?? 0 }
        let response = try await origin.open(message)
        var data = Data()
        for try await chunk in response.body { chunk.withUnsafeBytes { data.append(contentsOf: $0) } }
        if fault != nil || response.head.status != .partialContent {
            state.withLock { $0.wasted += Int64(data.count) }
        }
        var head = response.head
        switch fault {
        case .otherValidator: head.headerFields[.eTag] = "\"another\""
        case .otherRange:
            // The start of the range is off by one byte.
            let parts = head.headerFields[.contentRange]?.dropFirst(6).split(separator: "/") ?? []
            let bounds = parts.first?.split(separator: "-").compactMap { Int64($0) } ?? []
            if bounds.count == 2, bounds[0] > 0 {
                head.headerFields[.contentRange] = "bytes \(bounds[0] - 1)-\(bounds[1] - 1)/\(parts[1])"
            }
        case .truncated: data.removeLast()
        default: break
        }
        try receive(request, head, data)
    }

    private func receive(_ request: BackgroundTransferRequest, _ head: HTTPResponse, _ data: Data) throws {
        let file = URL(fileURLWithPath: scratch.file("download.tmp"))
        try data.write(to: file)
        try folder.receive(file, head, for: request.identifier)
    }

    /// Receives the first half of the first transfer, and leaves the transfer running.
    func receiveHalf() async throws {
        guard let request = waiting.first, state.withLock({ $0.halves[request.identifier] }) == nil else { return }
        let response = try await origin.open(
            UpstreamRequest(url: request.url, headerFields: request.headerFields))
        let length = response.head.headerFields[.contentLength].flatMap { Int($0) } ?? 0
        var count = 0
        for try await chunk in response.body {
            count += chunk.count
            if count >= length / 2 { break }
        }
        state.withLock { [count] in $0.halves[request.identifier] = Int64(count) }
    }
}

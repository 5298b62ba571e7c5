import NIOCore
import NIOPosix
import SpoolTesting

/// The requests on one connection, the pieces in which they are sent, and the way in which the connection ends.
struct AdversarialSession: Sendable {
    enum Ending: Sendable {
        /// Reads until the server ends the connection.
        case whole
        /// Closes or resets the connection after `sent` bytes and `responses` responses, possibly during the next
        /// response.
        case early(sent: Int, responses: Int, isMidway: Bool, resets: Bool)
    }

    let seed: UInt64
    let port: Int
    private(set) var requests: [AdversarialRequest] = []
    private(set) var pieces: [[UInt8]] = []
    private(set) var ending = Ending.whole

    /// Creates the session for a seed.
    init(seed: UInt64, for target: AdversarialTarget) {
        self.seed = seed
        port = target.port
        var random = SplitMix(seed)
        for _ in 0..<(1 + random.below(12)) { requests.append(.draw(for: target, &random)) }
        requests.append(.farewell(for: target))
        let bytes = requests.flatMap(\.bytes)
        pieces = Self.split(bytes, &random)
        if random.chance(10) {
            let sent = random.below(bytes.count + 1)
            // The session waits only for responses that the server must send.
            var (end, sure) = (0, 0)
            for request in requests {
                end += request.bytes.count
                guard end <= sent, case .shouldContinue = request.fate else { break }
                sure += 1
            }
            let responses = random.below(sure + 1)
            ending = .early(
                sent: sent, responses: responses, isMidway: responses < sure && random.chance(2),
                resets: random.chance(2))
        }
    }

    private static func split(_ bytes: [UInt8], _ random: inout SplitMix) -> [[UInt8]] {
        // Most sessions send all bytes at once. The others send pieces of random sizes, down to one byte.
        guard random.chance(3) else { return [bytes] }
        let largest = random.pick([3, 40, 1500])
        var rest = bytes[...]
        var pieces: [[UInt8]] = []
        while !rest.isEmpty {
            let piece = rest.prefix(pieces.count > 400 ? rest.count : 1 + random.below(largest))
            pieces.append(Array(piece))
            rest = rest.dropFirst(piece.count)
        }
        return pieces
    }

    /// The result of a session.
    struct Outcome: Sendable {
        var responses = 0
        /// A description of the server's fault; `nil` if there is none.
        var problem: String?
    }

    /// Runs the session.
    func run(on group: MultiThreadedEventLoopGroup) async -> Outcome {
        do {
            let channel = try await ClientBootstrap(group: group)
                .channelOption(.tcpOption(.tcp_nodelay), value: 1)
                .channelOption(.allowRemoteHalfClosure, value: true)
                .connect(host: "127.0.0.1", port: port) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                    }
                }
            // A session that hangs fails after 60 seconds.
            let net = channel.channel.eventLoop.scheduleTask(in: .seconds(60)) { channel.channel.close(promise: nil) }
            defer { net.cancel() }
            return try await channel.executeThenClose { inbound, outbound in
                async let sent: Void = send(outbound)
                let outcome = try await receive(inbound)
                if case .early(_, _, _, resets: true) = ending {
                    // If this fails, the connection is closed without a reset.
                    try? await (channel.channel as? any SocketOptionProvider)?.setSoLinger(
                        linger(l_onoff: 1, l_linger: 0)
                    ).get()
                }
                channel.channel.close(promise: nil)
                await sent
                return outcome
            }
        } catch {
            // The server closed or reset the connection. The bytes that were received before the error were already
            // checked.
            return Outcome(problem: isLenient ? nil : "session \(seed): \(error)")
        }
    }

    /// Whether the connection may end in any way.
    private var isLenient: Bool {
        if case .early = ending { return true }
        return requests.contains { if case .breaks = $0.fate { true } else { false } }
    }

    private func send(_ outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>) async {
        var left = Int.max
        if case .early(let sent, _, _, _) = ending { left = sent }
        do {
            for piece in pieces where left > 0 {
                let bytes = piece.prefix(left)
                left -= bytes.count
                try await outbound.write(ByteBuffer(bytes: bytes))
            }
        } catch {
            // The server ended the connection. `receive` checks whether that was allowed.
        }
    }

    private func receive(_ inbound: NIOAsyncChannelInboundStream<ByteBuffer>) async throws -> Outcome {
        var reader = StrictResponseReader()
        var outcome = Outcome()
        var wanted = Int.max
        var isMidway = false
        if case .early(_, let responses, let midway, _) = ending { (wanted, isMidway) = (responses, midway) }
        var iterator = inbound.makeAsyncIterator()
        var atEnd = false
        while true {
            if let problem = take(&reader, &outcome, atEnd) {
                outcome.problem = "session \(seed), request \(outcome.responses): \(problem)"
                return outcome
            }
            if atEnd { break }
            if outcome.responses >= wanted {
                guard isMidway, reader.rest.isEmpty, outcome.responses == wanted else { break }
                isMidway = false
            }
            do {
                if let buffer = try await iterator.next() {
                    reader.append(buffer.readableBytesView)
                } else {
                    atEnd = true
                }
            } catch {
                guard isLenient else { throw error }
                return outcome
            }
        }
        guard case .whole = ending else { return outcome }
        if outcome.responses < requests.count {
            switch requests[max(0, outcome.responses)].fate {
            case .breaks: return outcome
            case .shouldContinue, .ends:
                if outcome.responses > 0, case .shouldContinue = requests[outcome.responses - 1].fate {
                } else if outcome.responses > 0 {
                    break
                }
                outcome.problem =
                    "session \(seed): the connection ended without a response to request \(outcome.responses)"
            }
        }
        if !reader.rest.isEmpty, !isLenient {
            let index = min(outcome.responses, requests.count - 1)
            let asked = String(decoding: requests[index].bytes.prefix(400), as: UTF8.self).debugDescription
            let rest = String(decoding: reader.rest.prefix(800), as: UTF8.self).debugDescription
            outcome.problem =
                "session \(seed): \(reader.rest.count) bytes that are no whole response to request \(outcome.responses) of \(requests.count), \(asked): \(rest)"
        }
        return outcome
    }

    /// Checks all complete responses, and returns the first fault.
    private func take(
        _ reader: inout StrictResponseReader, _ outcome: inout Outcome, _ atEnd: Bool
    ) -> String? {
        while outcome.responses < requests.count {
            if outcome.responses > 0 {
                // After the last response, no more bytes are allowed.
                if case .shouldContinue = requests[outcome.responses - 1].fate {} else { return nil }
            }
            let request = requests[outcome.responses]
            let description = { String(decoding: request.bytes.prefix(400), as: UTF8.self).debugDescription }
            do {
                guard let response = try reader.next(request.expected, atEnd: atEnd) else { return nil }
                let isLast = if case .ends = request.fate { true } else { false }
                if let problem = request.expected.problem(of: response, isLast: isLast) {
                    return "\(problem), for \(description())"
                }
                outcome.responses += 1
            } catch {
                return "\(error), for \(description())"
            }
        }
        return nil
    }
}

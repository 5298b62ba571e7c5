import NIOCore
import NIOPosix
import SpoolTesting

/// One connection's requests, in the pieces in which they are sent, and how the client leaves.
struct HostileSession: Sendable {
    enum Ending: Sendable {
        /// Reads until the server ends the connection.
        case whole
        /// Leaves after having sent so many bytes and read so many responses, perhaps within the next one, in order or with a
        /// reset.
        case early(sent: Int, responses: Int, isMidway: Bool, resets: Bool)
    }

    let seed: UInt64
    let port: Int
    private(set) var requests: [HostileRequest] = []
    private(set) var pieces: [[UInt8]] = []
    private(set) var ending = Ending.whole

    /// The session that follows from a seed.
    init(seed: UInt64, for target: HostileTarget) {
        self.seed = seed
        port = target.port
        var random = SplitMix(seed)
        for _ in 0..<(1 + random.below(12)) { requests.append(.draw(for: target, &random)) }
        requests.append(.farewell(for: target))
        let bytes = requests.flatMap(\.bytes)
        pieces = Self.split(bytes, &random)
        if random.chance(10) {
            let sent = random.below(bytes.count + 1)
            // What it waits for must come.
            var (end, sure) = (0, 0)
            for request in requests {
                end += request.bytes.count
                guard end <= sent, case .goesOn = request.fate else { break }
                sure += 1
            }
            let responses = random.below(sure + 1)
            ending = .early(
                sent: sent, responses: responses, isMidway: responses < sure && random.chance(2),
                resets: random.chance(2))
        }
    }

    private static func split(_ bytes: [UInt8], _ random: inout SplitMix) -> [[UInt8]] {
        // Mostly as a client sends it; else in pieces of any size, down to one byte.
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

    /// What a session found.
    struct Outcome: Sendable {
        var responses = 0
        /// What the server did wrong; nil for nothing.
        var problem: String?
    }

    /// Runs it.
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
            // A net alone: whoever hangs fails by it.
            let net = channel.channel.eventLoop.scheduleTask(in: .seconds(60)) { channel.channel.close(promise: nil) }
            defer { net.cancel() }
            return try await channel.executeThenClose { inbound, outbound in
                async let sent: Void = send(outbound)
                let outcome = try await receive(inbound)
                if case .early(_, _, _, resets: true) = ending {
                    // Where it fails, the connection ends in good order.
                    try? await (channel.channel as? any SocketOptionProvider)?.setSoLinger(
                        linger(l_onoff: 1, l_linger: 0)
                    ).get()
                }
                channel.channel.close(promise: nil)
                await sent
                return outcome
            }
        } catch {
            // After a close, or a reset, of the server's: what came before has been looked at.
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
            // The server has ended the connection; whether it might is seen where responses are read.
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
            case .goesOn, .ends:
                if outcome.responses > 0, case .goesOn = requests[outcome.responses - 1].fate {
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

    /// Takes the responses that are there.
    private func take(
        _ reader: inout StrictResponseReader, _ outcome: inout Outcome, _ atEnd: Bool
    ) -> String? {
        while outcome.responses < requests.count {
            if outcome.responses > 0 {
                // After the last response, nothing more may come.
                if case .goesOn = requests[outcome.responses - 1].fate {} else { return nil }
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

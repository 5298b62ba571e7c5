#if Tools
import Foundation
import HTTPTypes
import NIOCore
import NIOHTTP1
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A connection that sends each ``OriginResponse`` as raw bytes, because an encoder would reject faulty responses.
///
/// The handler runs on its channel's event loop. It writes only while the channel is writable, so that only a few bytes
/// wait in the channel.
final class OriginConnection: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = ByteBuffer

    /// The current response.
    private struct Current {
        var response: OriginResponse
        var number: Int
        var path: String
        /// The number of body bytes written to the channel. The log counts the bytes that the socket accepted.
        var written: Int64 = 0
        var incident: OriginResponse.Incident?
        /// The number of body bytes that may be written before the next pause, or `nil` if the body has no pace.
        var allowance: Int?
        var isWaiting = false
        var isEnded = false
    }

    private let originState: OriginState
    private let number: Int
    private var waiting: [(head: HTTPRequestHead, body: [UInt8])] = []
    private var head: HTTPRequestHead?
    private var body: [UInt8] = []
    private var current: Current?

    init(originState: OriginState, number: Int) {
        self.originState = originState
        self.number = number
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): self.head = head
        case .body(let bytes): body += bytes.readableBytesView
        case .end:
            if let head { waiting.append((head, body)) }
            (head, body) = (nil, [])
            beginNext(context)
        }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        pump(context)
        context.fireChannelWritabilityChanged()
    }

    func channelInactive(context: ChannelHandlerContext) {
        if let current {
            originState.drop(current.number)
            originState.log.update(current.number) { if !$0.isOver { $0.ending = .clientDisconnected } }
        }
        current = nil
        waiting = []
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    private func beginNext(_ context: ChannelHandlerContext) {
        guard current == nil, !waiting.isEmpty else { return }
        let (head, body) = waiting.removeFirst()
        let (response, number, path) = originState.response(head, body, connection: self.number)
        current = Current(
            response: response, number: number, path: path, incident: response.incident, allowance: response.pace?.bytes
        )
        if let incident = response.incident, incident.after == nil {
            happen(incident, context)
            if current?.isWaiting != false { return }
        }
        sendHead(context)
    }

    private func sendHead(_ context: ChannelHandlerContext) {
        guard let current else { return }
        originState.log.update(current.number) {
            $0.status = current.response.status
            $0.body = current.response.body
        }
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: current.response.head)), promise: nil)
        pump(context)
    }

    /// Writes as much of the body as possible.
    private func pump(_ context: ChannelHandlerContext) {
        var wrote = false
        while let current, !current.isWaiting, !current.isEnded {
            let total = Int64(current.response.body.count)
            if let incident = current.incident, let after = incident.after, current.written >= min(after, total) {
                // The incident takes effect before the flush, so that a client can release a stall once it has received
                // the bytes before the stall.
                happen(incident, context)
                break
            }
            if current.written >= total {
                end(context)
                break
            }
            guard context.channel.isWritable else { break }
            var count = min(total - current.written, Self.pieceSize)
            if let after = current.incident?.after { count = min(count, after - current.written) }
            if let allowance = current.allowance { count = min(count, Int64(allowance)) }
            guard count > 0 else {
                pause(context)
                break
            }
            write(Int(count), context)
            wrote = true
        }
        if wrote { context.flush() }
    }

    private func write(_ count: Int, _ context: ChannelHandlerContext) {
        guard var current else { return }
        let start = current.response.body.lowerBound + current.written
        let bytes = current.response.content.bytes(start..<start + Int64(count))
        var buffer = context.channel.allocator.buffer(capacity: count + 16)
        if current.response.isChunked { buffer.writeString(String(count, radix: 16) + "\r\n") }
        buffer.writeBytes(bytes)
        if current.response.isChunked { buffer.writeString("\r\n") }
        current.written += Int64(count)
        if let allowance = current.allowance { current.allowance = allowance - count }
        self.current = current
        let (log, number) = (originState.log, current.number)
        let accepted = context.eventLoop.makePromise(of: Void.self)
        accepted.futureResult.whenSuccess { log.update(number) { $0.bytesSent += Int64(count) } }
        context.write(wrapOutboundOut(buffer), promise: accepted)
    }

    /// Ends a complete response after the socket has accepted its last byte.
    private func end(_ context: ChannelHandlerContext) {
        current?.isEnded = true
        guard let current else { return }
        let text = current.response.isChunked ? "0\r\n\r\n" : ""
        afterLastByte(text, context) { handler, context in
            handler.originState.log.update(current.number) { $0.ending = .finished }
            handler.current = nil
            if current.response.closes {
                context.close(promise: nil)
            } else {
                handler.beginNext(context)
            }
        }
    }

    private func happen(_ incident: OriginResponse.Incident, _ context: ChannelHandlerContext) {
        guard let number = current?.number else { return }
        current?.isWaiting = true
        current?.incident = nil
        switch incident.kind {
        case .cut, .reset:
            afterLastByte("", context) { handler, context in
                handler.originState.log.update(number) { $0.ending = .interrupted }
                if incident.kind == .reset { handler.makeCloseReset(context) }
                context.close(promise: nil)
            }
        case .stall:
            let handler = NIOLoopBound((self, context), eventLoop: context.eventLoop)
            let loop = context.eventLoop
            originState.hold(number, path: current?.path ?? "") {
                loop.execute {
                    let (handler, context) = handler.value
                    handler.resume(number, afterHead: incident.after != nil, context)
                }
            }
        }
    }

    private func resume(_ number: Int, afterHead: Bool, _ context: ChannelHandlerContext) {
        guard current?.number == number else { return }
        current?.isWaiting = false
        if afterHead { pump(context) } else { sendHead(context) }
    }

    /// Pauses a paced body on the server's clock.
    private func pause(_ context: ChannelHandlerContext) {
        guard let number = current?.number, let pace = current?.response.pace else { return }
        current?.isWaiting = true
        let handler = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        let (loop, clock) = (context.eventLoop, originState.clock)
        Task {
            // This task is never cancelled. A cancellation would only cause the next bytes to be sent sooner.
            try? await clock.sleep(for: pace.pause)
            loop.execute {
                let (handler, context) = handler.value
                guard handler.current?.number == number else { return }
                handler.current?.allowance = pace.bytes
                handler.resume(number, afterHead: true, context)
            }
        }
    }

    /// Writes `text`, and calls `body` after the socket has accepted it and all previous bytes.
    private func afterLastByte(
        _ text: String, _ context: ChannelHandlerContext,
        _ body: @escaping (OriginConnection, ChannelHandlerContext) -> Void
    ) {
        let accepted = context.eventLoop.makePromise(of: Void.self)
        accepted.futureResult.assumeIsolated().whenSuccess { body(self, context) }
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text)), promise: accepted)
    }

    /// Makes the next close send RST instead of FIN, by setting `SO_LINGER` to zero seconds (socket(7)).
    private func makeCloseReset(_ context: ChannelHandlerContext) {
        guard let socket = context.channel as? any SocketOptionProvider else { return }
        _ = socket.setSoLinger(linger(l_onoff: 1, l_linger: 0))
    }

    private static let pieceSize: Int64 = 16 * 1024
}

extension OriginState {
    /// Records a request and determines the response.
    fileprivate func response(
        _ head: HTTPRequestHead, _ body: [UInt8], connection: Int
    ) -> (OriginResponse, number: Int, path: String) {
        let parts = head.uri.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        var fields = HTTPFields()
        for (name, value) in head.headers {
            if let name = HTTPField.Name(name) { fields.append(HTTPField(name: name, value: value)) }
        }
        let path = String(parts[0])
        var exchange = OriginExchange(
            connection: connection, method: head.method.rawValue, path: path,
            query: parts.count > 1 ? String(parts[1]) : "", headerFields: fields)
        exchange.requestBody = body
        exchange = log.begin(exchange)
        return (response(exchange, keepsAlive: head.isKeepAlive), exchange.number, path)
    }
}

/// The connections that an ``OriginServer`` has accepted: their number, and those that are open.
final class OriginConnections: Sendable {
    private struct State {
        var count = 0
        var open: [Int: any Channel] = [:]
    }

    private let state = Mutex(State())

    /// The number of accepted connections.
    var count: Int { state.withLock { $0.count } }
    var open: [any Channel] { state.withLock { Array($0.open.values) } }

    /// Adds a new connection, and returns its number, counting from 0.
    func add(_ channel: any Channel) -> Int {
        let number = state.withLock { state in
            defer { state.count += 1 }
            state.open[state.count] = channel
            return state.count
        }
        channel.closeFuture.whenComplete { _ in self.state.withLock { state in state.open[number] = nil } }
        return number
    }
}
#endif

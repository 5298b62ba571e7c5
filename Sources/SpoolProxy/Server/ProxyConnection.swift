#if Proxy
import HTTPTypes
import NIOCore
import Spool

/// One client's connection, which receives requests and sends their responses in order.
///
/// The connection is used on the event loop of its channel. During a response, up to ``inboundLimit`` received bytes
/// are buffered. While the buffer is full, the socket is not read. An error ends only this connection.
final class ProxyConnection: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    /// The state of the connection. The arrows list the states that can follow.
    private enum State {
        /// The connection waits for the PROXY protocol header of a load balancer. → reading, ending
        case awaitingProxyHeader
        /// The connection waits for a request, or for the rest of its head. → responding, ending
        case reading
        /// A response is being created and sent, while the body of the request may still be received. → reading, ending
        case responding(Exchange)
        /// The last response was sent. Received bytes are ignored until the client closes the connection, so that the
        /// client can read the response.
        case ending
    }

    private struct Exchange {
        var request: RequestHead
        var body: RequestBodyReader
        var bodyEnded: Bool
        /// The stream that receives the body, or `nil` if the body is ignored.
        var sink: RequestBodyStream?
        var dropped = 0
        var task: Task<Void, Never>?
        var isOver = false
        var keeps = false
    }

    private let service: ProxyService
    private var peer: ConnectionClient
    private let table: ConnectionTable
    private let progress = SendProgress()
    private var state: State
    private var inbound = ByteBuffer()
    private var parser: RequestParser
    private var isReadHeld = false
    private var context: ChannelHandlerContext?
    private(set) var deadline: NIODeadline?
    private var watch = ClientWatch()
    private(set) var receivedBodyBytes = 0
    private var hasStartedHead = false
    /// Whether part of the response has been written.
    private var hasStartedResponse = false
    private var hot: RecentMedia?
    private var isAdvancing = false

    /// The maximum number of received bytes that may wait during a response.
    private static let inboundLimit = 64 << 10
    /// The maximum number of ignored bytes of a body. If it is exceeded, the connection is closed.
    private static let unwantedBodyLimit = 256 << 10
    /// The time limit for the rest of a body after the response has been sent.
    private static let unwantedBodyTime = Duration.seconds(10)

    init(service: ProxyService, client: ProxyClient, table: ConnectionTable) {
        self.service = service
        peer = ConnectionClient(client, service.trustedProxies, table.clients)
        self.table = table
        state = peer.hasHeader ? .awaitingProxyHeader : .reading
        self.parser = RequestParser(limit: service.configuration.limits.maximumHeaderSize)
    }

    // MARK: - Channel events

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        table.insert(self)
        if case .awaitingProxyHeader = state { return setDeadline(service.configuration.limits.headerTimeout) }
        admit()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        table.remove(self)
        peer.end()
    }

    /// Starts to wait for requests, unless the client has too many connections.
    private func admit() {
        guard peer.admit() else { return reject() }
        setDeadline(service.configuration.limits.idleTimeout)
    }

    func channelInactive(context: ChannelHandlerContext) {
        leaveExchange()
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case .inputClosed? = event as? ChannelEvent else { return context.fireUserInboundEventTriggered(event) }
        watch.halfClosed = HalfClosedState()
        advance()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        if case .ending = state { return }
        if inbound.readableBytes == 0 {
            inbound = bytes
        } else {
            // Otherwise, the buffer would keep growing while a client sends bytes without pausing.
            if inbound.readerIndex >= Self.inboundLimit { inbound.discardReadBytes() }
            inbound.writeBuffer(&bytes)
        }
        advance()
    }

    func read(context: ChannelHandlerContext) {
        if case .responding = state, inbound.readableBytes >= Self.inboundLimit {
            isReadHeld = true
        } else {
            context.read()
        }
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        hasStartedResponse = true
        context.write(data, promise: promise)
    }

    // MARK: - Requests

    private func advance() {
        // A response may be sent synchronously, which calls this method again.
        guard !isAdvancing else { return }
        isAdvancing = true
        defer { isAdvancing = false }
        while true {
            switch state {
            case .ending: return
            case .awaitingProxyHeader:
                guard takeProxyHeader() else { return watch.isInputClosed ? close() : releaseRead() }
            case .responding:
                guard takeBody() else { return }
            case .reading:
                do {
                    guard let head = try parser.next(in: &inbound) else {
                        guard !watch.isInputClosed else { return end() }
                        // Empty lines do not start a head, and the parser has removed them.
                        if inbound.readableBytes > 0, !hasStartedHead { startHead() }
                        return releaseRead()
                    }
                    hasStartedHead = false
                    start(head)
                } catch {
                    return reject(error)
                }
            }
        }
    }

    /// Removes the PROXY protocol header, which identifies the client of the connection.
    ///
    /// - Returns: `false` if the header is not complete yet.
    private func takeProxyHeader() -> Bool {
        do {
            guard let header = try ProxyProtocolHeader.next(in: &inbound) else { return false }
            peer.introduce(header)
            state = .reading
            admit()
        } catch {
            service.note(malformed: error, from: peer.client)
            close()
        }
        return true
    }

    /// Starts the time limit for the rest of a head.
    private func startHead() {
        hasStartedHead = true
        setDeadline(service.configuration.limits.headerTimeout)
    }

    private func start(_ head: RequestHead) {
        let body = RequestBodyReader(head.body)
        var exchange = Exchange(request: head, body: body, bodyEnded: head.body == .none)
        if head.body != .none, service.wantsBody(of: head) { exchange.sink = bodyStream() }
        deadline = nil
        watch.progressSeen = nil
        hasStartedResponse = false
        state = .responding(exchange)
        let (asking, rejection) = peer.start(head)
        if rejection == nil, let hot, let context, let hit = service.hit(head, of: hot, buffers: table.buffers) {
            return send(hit, head, asking, context)
        }
        if head.minorVersion >= 1, head.body != .none, head.fields["expect"]?.lowercased() == "100-continue" {
            context?.writeAndFlush(
                wrapOutboundOut(.byteBuffer(ByteBuffer(staticString: "HTTP/1.1 100 Continue\r\n\r\n"))), promise: nil)
        }
        respond(to: head, from: asking, rejection: rejection, sink: exchange.sink)
    }

    /// Sends the response to a hit immediately.
    private func send(
        _ hit: RecentMedia.Hit, _ head: RequestHead, _ asking: ProxyClient, _ context: ChannelHandlerContext
    ) {
        let start = ContinuousClock.now
        service.started()
        setStallDeadline()
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.assumeIsolated().whenComplete { result in
            if let slice = hit.slice { slice.release() } else { self.table.buffers.didSend(hit.buffer) }
            var isSent = false
            if case .success = result {
                isSent = true
                self.progress.sent(hit.count)
            }
            self.service.ended(
                head, hit, bytes: isSent ? hit.count : 0, since: start, client: asking)
            self.responded(keeps: isSent)
        }
        guard let slice = hit.slice else {
            table.buffers.willSend(hit.buffer)
            return context.writeAndFlush(wrapOutboundOut(.byteBuffer(hit.buffer)), promise: written)
        }
        let cork = TCPCork(context.channel)
        context.write(wrapOutboundOut(.byteBuffer(hit.buffer)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(slice.data), promise: written)
        cork.release()
    }

    private func respond(
        to head: RequestHead, from asking: ProxyClient, rejection: RequestFailure?, sink: RequestBodyStream?
    ) {
        guard let context else { return }
        let (service, channel, progress) = (service, context.channel, progress)
        let body = sink.map { $0.body }
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        setStallDeadline()
        service.exchanges.started()
        let task = Task(executorPreference: service.executor) {
            let sender = ResponseSender(channel: channel, progress: progress, retryWaiter: service.retryWaiter)
            let served = await service.serve(
                head, body: body, client: asking, rejection: rejection, over: sender)
            channel.eventLoop.execute {
                me.value.hot = served.hot ?? me.value.hot
                me.value.responded(keeps: served.keeps)
                service.exchanges.ended()
            }
        }
        update { $0.task = task }
    }

    private func update(_ change: (inout Exchange) -> Void) {
        guard case .responding(var exchange) = state else { return }
        state = .ending  // This avoids a copy.
        change(&exchange)
        state = .responding(exchange)
    }

    /// Removes the received bytes of the request's body.
    ///
    /// - Returns: Whether the exchange is over and the next request may be read.
    private func takeBody() -> Bool {
        guard case .responding(var exchange) = state else { return true }
        do {
            while !exchange.bodyEnded {
                guard exchange.sink?.hasSpace ?? true else { break }
                switch try exchange.body.next(in: &inbound) {
                case .bytes(let bytes):
                    receivedBodyBytes += bytes.readableBytes
                    exchange.dropped += exchange.sink == nil ? bytes.readableBytes : 0
                    exchange.sink?.take(bytes)
                    continue
                case .end:
                    exchange.bodyEnded = true
                    exchange.sink?.end()
                case .incomplete where watch.isInputClosed:
                    close()
                    return false
                case .incomplete: break
                }
                break
            }
        } catch {
            exchange.sink?.fail()
            exchange.task?.cancel()
            // Closing immediately would reset the connection and lose responses that the client has not received.
            if hasStartedResponse { end() } else { send(error, to: exchange.request) }
            return false
        }
        state = .responding(exchange)
        if exchange.isOver { return finish(exchange) }
        releaseRead()
        return false
    }

    /// Continues after a response has been sent.
    private func responded(keeps: Bool) {
        guard case .responding = state else { return }
        update {
            $0.isOver = true; $0.keeps = keeps; $0.sink?.fail(); $0.sink = nil
        }
        // The rest of the request's body must be received by this deadline. Receiving some of these bytes does not
        // extend the deadline.
        setDeadline(Self.unwantedBodyTime)
        advance()
    }

    private func finish(_ exchange: Exchange) -> Bool {
        guard exchange.keeps, !service.isStopping else {
            end()
            return false
        }
        guard exchange.bodyEnded else {
            if exchange.dropped > Self.unwantedBodyLimit {
                end()
            } else {
                releaseRead()
            }
            return false
        }
        peer.endRequest()
        state = .reading
        setDeadline(service.configuration.limits.idleTimeout)
        return true
    }

    /// Returns a stream for the request's body, which resumes this connection when it accepts more bytes.
    private func bodyStream() -> RequestBodyStream? {
        context.map { context in
            let me = NIOLoopBound(self, eventLoop: context.eventLoop)
            return RequestBodyStream { me.eventLoop.execute { me.value.advance() } }
        }
    }

    private func releaseRead() {
        // An idle connection does not hold a buffer.
        if inbound.readableBytes == 0 { inbound = ByteBuffer() }
        guard isReadHeld, inbound.readableBytes < Self.inboundLimit else { return }
        isReadHeld = false
        context?.read()
    }

    // MARK: - Closing

    /// Responds to bytes that are not a request, and ends the connection.
    private func reject(_ failure: RequestFailure) {
        guard context != nil else { return }
        service.note(rejected: failure, client: peer.client)
        let request = RequestHead(
            method: .get, target: "*", minorVersion: 1, fields: RequestFields(bytes: [], lines: []), body: .none,
            keepsAlive: false)
        send(failure, to: request)
    }

    /// Sends a failure as the last response, and ends the connection.
    private func send(_ failure: RequestFailure, to request: RequestHead) {
        guard let context else { return }
        var response = request.isForAPI ? Response(ofAPI: failure) : Response(failure)
        response.closes = true
        let (head, framing, _) = response.framed(for: request, keepsAlive: false, date: service.date.text)
        var buffer = context.channel.allocator.buffer(capacity: 512)
        head.encode(into: &buffer)
        if framing != .none, case .bytes(var bytes) = response.body { buffer.writeBuffer(&bytes) }
        context.writeAndFlush(wrapOutboundOut(.byteBuffer(buffer)), promise: nil)
        end()
    }

    /// Rejects the connection because too many are open.
    func reject() {
        if case .ending = state { return }
        reject(ConnectionClient.tooManyConnections)
    }

    /// Stops sending, and closes the connection when the client closes it, or after two seconds.
    private func end() {
        peer.endRequest()
        state = .ending
        inbound.clear()
        setDeadline(.seconds(2))
        context?.close(mode: .output, promise: nil)
        isReadHeld = false
        context?.read()
    }

    private func close() {
        leaveExchange()
        context?.close(promise: nil)
    }

    /// Cancels the running response, even if it waits for the request's body.
    private func leaveExchange() {
        if case .responding(let exchange) = state {
            exchange.task?.cancel()
            exchange.sink?.fail()
        }
        peer.endRequest()
        state = .ending
    }

    // MARK: - Time

    private func setDeadline(_ time: Duration?, from now: NIODeadline = .now()) {
        deadline = time.map { now + TimeAmount($0) }
    }

    private func setStallDeadline(from now: NIODeadline = .now()) {
        setDeadline(peer.client.isLoopback ? nil : service.configuration.limits.sendTimeout, from: now)
    }

    /// Closes the connection if its deadline has passed. This method is called about once a second.
    func check(now: NIODeadline) {
        if watch.isInputClosed, case .responding = state, let context {
            let buffered = ClientProgress.bufferedBytes(of: context.channel)
            guard watch.halfClosed?.isOver(sent: progress.count, buffered: buffered) != true else { return close() }
        }
        guard let deadline else { return }
        if case .responding(let exchange) = state, !exchange.isOver {
            return checkProgress(of: exchange, isDue: now >= deadline, now: now)
        }
        guard now >= deadline else { return }
        switch state {
        case .reading where hasStartedHead:
            reject(RequestFailure(408, "the request headers were not received in time"))
        case .awaitingProxyHeader:
            service.note(
                malformed: .init(description: "it was not received in time"), from: peer.client)
            close()
        default: close()
        }
    }

    /// Closes the connection if no bytes were transferred within the stall time even though the client could have
    /// received or sent some.
    private func checkProgress(of exchange: Exchange, isDue: Bool, now: NIODeadline) {
        guard let context else { return }
        let buffered = ClientProgress.bufferedBytes(of: context.channel)
        let isBodyAwaited = !exchange.bodyEnded && exchange.sink?.hasSpace == true
        guard buffered > 0 || isBodyAwaited else {
            // The client is waiting for the origin.
            watch.progressSeen = nil
            return setStallDeadline(from: now)
        }
        guard isDue || watch.progressSeen == nil else { return }
        let current = ClientProgress(
            sent: progress.count, buffered: buffered, received: receivedBodyBytes, channel: context.channel)
        guard current != watch.progressSeen else { return close() }
        watch.progressSeen = current
        setStallDeadline(from: now)
    }

    /// Closes the connection if it is idle. Otherwise, it is closed after its response.
    func stop() {
        switch state {
        case .awaitingProxyHeader, .reading: close()
        case .responding, .ending: break
        }
    }

    /// Closes the connection immediately.
    func abort() { close() }
}
#endif

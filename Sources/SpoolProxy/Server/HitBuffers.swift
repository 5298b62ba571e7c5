#if Proxy
import NIOCore

/// The buffers of one event loop for responses whose head and body are sent from the same buffer.
///
/// A socket usually accepts such a response immediately, and the next response on the event loop then reuses the
/// buffer. If a client is slow, its response has its own buffer until the socket has accepted all of it.
/// ``unsentLimit`` limits the memory of all slow clients together.
final class HitBuffers {
    let allocator: ByteBufferAllocator
    private var spare: ByteBuffer?
    private var isRecent = false
    /// The total size of the buffers with responses that the sockets have not accepted yet, in bytes.
    private(set) var unsent = 0

    /// The maximum number of unsent bytes. If it is exceeded, bodies are sent from their files, which does not require
    /// memory.
    static let unsentLimit = 4 << 20

    init(allocator: ByteBufferAllocator = ByteBufferAllocator()) { self.allocator = allocator }

    /// Returns an empty buffer, or `nil` if unsent responses use too much memory.
    func take(capacity: Int) -> ByteBuffer? {
        guard unsent < Self.unsentLimit else { return nil }
        isRecent = true
        guard var buffer = spare.take() else { return allocator.buffer(capacity: capacity) }
        // If the buffer's memory is still in use elsewhere, this call allocates new memory.
        buffer.clear(minimumCapacity: capacity)
        return buffer
    }

    /// Stores a buffer that is no longer in use, for the next response.
    func putBack(_ buffer: ByteBuffer) { spare = buffer }

    /// Counts a buffer that is being sent.
    func willSend(_ buffer: ByteBuffer) { unsent += buffer.storageCapacity }

    /// Takes a buffer back after it has been sent, or after its connection has been closed.
    func didSend(_ buffer: ByteBuffer) {
        unsent -= buffer.storageCapacity
        putBack(buffer)
    }

    /// Releases the spare buffer if it has not been used since the previous call.
    func releaseUnused() {
        if !isRecent { spare = nil }
        isRecent = false
    }
}
#endif

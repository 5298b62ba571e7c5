import CMPV
import Dispatch
import Synchronization

/// The reading side of a ``MediaStream`` for one playback.
///
/// An item that is played again gets a new reader. Threads from the previous playback may still use the previous
/// reader.
final class StreamReader: Sendable {
    let stream: MediaStream
    private let arrival = DispatchSemaphore(value: 0)
    private let closed = Atomic<Bool>(false)

    init(_ stream: MediaStream) { self.stream = stream }

    /// Whether the reader is closed.
    var isClosed: Bool { closed.load(ordering: .sequentiallyConsistent) }

    // MARK: The demuxer's side

    /// Opens the stream at byte 0, and waits for the delegate's information. Returns `false` if loading the information
    /// fails or the reader is closed.
    func open() -> Bool { stream.open(for: self) }

    /// Waits until bytes are available at the position, and reads them.
    ///
    /// - Returns: The number of bytes, or `nil` on failure. The number is 0 at the end of the resource, or if a seek
    ///   ended the read.
    func read(into target: UnsafeMutableRawBufferPointer) -> Int? { stream.read(for: self, into: target) }

    func seek(to offset: Int64) { stream.seek(to: offset, for: self) }

    // MARK: The player's side

    /// Makes all current and future reads fail, and discards bytes that are delivered later. Open requests are
    /// cancelled only if `cancelling` is `true`.
    func close(cancelling: Bool) {
        closed.store(true, ordering: .sequentiallyConsistent)
        stream.close(self, cancelling: cancelling)
        // The reader is woken up even if another reader is now using the stream.
        wake()
    }

    // MARK: The stream's side

    /// Waits until bytes may be available.
    func wait() { arrival.wait() }

    func wake() { arrival.signal() }
}

// The functions that libmpv calls to read a custom URL. They run on libmpv's own threads (`mpv/opener`, `mpv/demux`).
// Therefore, they are plain functions: an actor-isolated closure would crash there.

/// Opens a stream. The function has the type `mpv_stream_cb_open_ro_fn` of libmpv. `userData` is an unretained
/// ``StreamReader``, which the playback retains until its handle is destroyed.
func openMediaStream(
    _ userData: UnsafeMutableRawPointer?, _ url: UnsafeMutablePointer<CChar>?,
    _ info: UnsafeMutablePointer<mpv_stream_cb_info>?
) -> Int32 {
    guard let userData, let info else { return MPV_ERROR_LOADING_FAILED.rawValue }
    let reader = Unmanaged<StreamReader>.fromOpaque(userData).takeUnretainedValue()
    guard reader.open() else { return MPV_ERROR_LOADING_FAILED.rawValue }
    info.pointee.cookie = userData
    info.pointee.read_fn = readMediaStream
    info.pointee.close_fn = { _ in }
    if reader.stream.contentInformation?.isByteRangeAccessSupported ?? false {
        info.pointee.seek_fn = seekMediaStream
        info.pointee.size_fn = sizeOfMediaStream
    }
    return 0
}

private func reader(_ cookie: UnsafeMutableRawPointer?) -> StreamReader? {
    cookie.map { Unmanaged<StreamReader>.fromOpaque($0).takeUnretainedValue() }
}

private func readMediaStream(
    _ cookie: UnsafeMutableRawPointer?, _ buffer: UnsafeMutablePointer<CChar>?, _ count: UInt64
) -> Int64 {
    guard let reader = reader(cookie), let buffer else { return -1 }
    let target = UnsafeMutableRawBufferPointer(start: buffer, count: Int(clamping: count))
    return reader.read(into: target).map(Int64.init) ?? -1
}

private func seekMediaStream(_ cookie: UnsafeMutableRawPointer?, _ offset: Int64) -> Int64 {
    guard let reader = reader(cookie), offset >= 0 else { return Int64(MPV_ERROR_GENERIC.rawValue) }
    reader.seek(to: offset)
    return offset
}

private func sizeOfMediaStream(_ cookie: UnsafeMutableRawPointer?) -> Int64 {
    reader(cookie)?.stream.length ?? Int64(MPV_ERROR_UNSUPPORTED.rawValue)
}

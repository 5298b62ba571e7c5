import CMPV

// The functions that libmpv calls to read a custom URL. They run on libmpv's own threads (`mpv/opener`, `mpv/demux`), so they
// are plain functions: a closure in an actor-isolated place would trap there.

/// The `mpv_stream_cb_open_ro_fn`: `userData` is an unretained ``StreamReader``, which the playback keeps alive until
/// its handle is destroyed.
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

import CMPV

/// A libmpv client handle, with the operations that playback needs: options, asynchronous commands, and events.
///
/// Copies refer to the same handle. libmpv allows concurrent calls from several threads. However, only one thread may
/// call ``nextEvent(timeout:)``, and no calls may follow ``destroy()``. ``ItemPlayback`` ensures this.
///
/// `@unchecked`: the pointer refers to an object that libmpv synchronizes.
struct MPVHandle: @unchecked Sendable {
    private let pointer: OpaquePointer

    /// The reason why a handle could not be created.
    static var failure: String { cmpv_loading_error().map { String(cString: $0) } ?? "libmpv could not be started" }

    /// Creates and starts a handle.
    ///
    /// The result is `nil` if libmpv cannot be loaded or initialized, runs out of memory, or rejects the number format
    /// of the process's locale. Options that the installed libmpv does not support are ignored.
    init?(options: [(name: String, value: String)]) {
        guard let pointer = cmpv_create() else { return nil }
        for option in options { cmpv_set_option_string(pointer, option.name, option.value) }
        guard cmpv_initialize(pointer) >= 0 else {
            cmpv_terminate_destroy(pointer)
            return nil
        }
        self.pointer = pointer
    }

    /// Makes libmpv read `scheme://…` URLs from a stream. The caller must retain the reader until ``destroy()`` has
    /// returned.
    func addStream(scheme: String, _ reader: StreamReader) {
        cmpv_stream_cb_add_ro(pointer, scheme, Unmanaged.passUnretained(reader).toOpaque(), openMediaStream)
    }

    /// Requests an event for every change of these properties.
    func observe(_ names: [String]) {
        for name in names { cmpv_observe_property(pointer, 0, name, formatOfProperty(name)) }
    }

    /// Sends a command without waiting. The reply event contains the ID.
    func command(_ words: [String], id: UInt64) {
        withArguments(words) { arguments in
            _ = cmpv_command_async(pointer, id, arguments)
        }
    }

    /// Sets a property without waiting. Returns whether an event will acknowledge the change.
    func set(_ name: String, _ value: String) -> Bool {
        value.withCString { text in
            var text: UnsafePointer<CChar>? = text
            return cmpv_set_property_async(pointer, 0, name, MPV_FORMAT_STRING, &text) >= 0
        }
    }

    /// Returns the next event, or waits for at most `timeout` seconds. A negative timeout waits forever.
    func nextEvent(timeout: Double) -> MPVEvent {
        MPVEvent(cmpv_wait_event(pointer, timeout))
    }

    /// Returns the value of a Boolean property, or `nil` if it is not available.
    func flag(_ name: String) -> Bool? {
        var value: Int32 = 0
        return cmpv_get_property(pointer, name, MPV_FORMAT_FLAG, &value) >= 0 ? value == 1 : nil
    }

    /// Returns the value of a numeric property, or `nil` if it is not available.
    func number(_ name: String) -> Double? {
        var value = 0.0
        return cmpv_get_property(pointer, name, MPV_FORMAT_DOUBLE, &value) >= 0 ? value : nil
    }

    /// Returns the value of a property as text, or `nil` if it is not available.
    func text(_ name: String) -> String? {
        guard let text = cmpv_get_property_string(pointer, name) else { return nil }
        defer { cmpv_free(text) }
        return String(cString: text)
    }

    /// Ends a waiting call to ``nextEvent(timeout:)``.
    func wakeUp() { cmpv_wakeup(pointer) }

    /// Ends the player and waits for its threads.
    func destroy() { cmpv_terminate_destroy(pointer) }

    private func withArguments(_ words: [String], _ body: (UnsafeMutablePointer<UnsafePointer<CChar>?>?) -> Void) {
        let copies = words.map { Array($0.utf8CString) }
        let block = copies.flatMap { $0 }
        block.withUnsafeBufferPointer { bytes in
            var starts: [UnsafePointer<CChar>?] = []
            var offset = 0
            for copy in copies {
                starts.append(bytes.baseAddress.map { $0 + offset })
                offset += copy.count
            }
            starts.append(nil)
            starts.withUnsafeMutableBufferPointer { body($0.baseAddress) }
        }
    }
}

/// Returns the format of an observed property: a flag or a number.
private func formatOfProperty(_ name: String) -> mpv_format {
    ["core-idle", "eof-reached", "pause"].contains(name) ? MPV_FORMAT_FLAG : MPV_FORMAT_DOUBLE
}

extension MPVHandle {
    /// Returns the tracks that the demuxer has found. Cover art is excluded, because Apple's AVFoundation treats it as
    /// metadata.
    func tracks() -> [TrackValues] {
        let count = Int(number("track-list/count") ?? 0)
        var tracks: [TrackValues] = (0..<max(0, count)).compactMap { index in
            let entry = "track-list/\(index)/"
            guard let type = text(entry + "type").flatMap(Self.mediaType), flag(entry + "albumart") != true else {
                return nil
            }
            return TrackValues(
                trackID: CMPersistentTrackID(index + 1), mediaType: type,
                width: number(entry + "demux-w") ?? 0, height: number(entry + "demux-h") ?? 0,
                bitsPerSecond: Float(number(entry + "demux-bitrate") ?? 0),
                framesPerSecond: Float(number(entry + "demux-fps") ?? 0),
                languageCode: text(entry + "lang"), isEnabled: flag(entry + "default") ?? true)
        }
        // libmpv reports bit rates only for audio. If the bit rate of only one track is unknown, the remaining bit rate
        // of the file is assigned to that track.
        let unknown = tracks.indices.filter { tracks[$0].mediaType != .subtitle && tracks[$0].bitsPerSecond == 0 }
        if unknown.count == 1, let index = unknown.first, let bytes = number("file-size"),
            let seconds = number("duration"),
            seconds > 0
        {
            tracks[index].bitsPerSecond = max(0, Float(bytes * 8 / seconds) - tracks.map(\.bitsPerSecond).reduce(0, +))
        }
        return tracks
    }

    private static func mediaType(_ name: String) -> AVMediaType? {
        switch name {
        case "video": .video
        case "audio": .audio
        case "sub": .subtitle
        default: nil
        }
    }
}

/// An event from libmpv, copied from its memory.
enum MPVEvent: Sendable, Equatable {
    case none
    case shutDown
    case fileLoaded
    /// The file was closed. The error is 0 at the end of the file; otherwise, it is libmpv's error code.
    case fileEnded(error: Int32, message: String?)
    case seek
    case playbackRestart
    case reply(id: UInt64, error: Int32)
    /// The requested image, or `nil` if there is none.
    case picture(Picture?)
    /// A change to a property has taken effect.
    case propertySet
    case number(name: String, value: Double?)
    case flag(name: String, value: Bool)
    case other

    /// The reply ID of a command that requests an image.
    static let pictureReply = UInt64.max

    init(_ event: UnsafeMutablePointer<mpv_event>?) {
        guard let event = event?.pointee else {
            self = .none
            return
        }
        switch event.event_id {
        case MPV_EVENT_NONE: self = .none
        case MPV_EVENT_SHUTDOWN: self = .shutDown
        case MPV_EVENT_FILE_LOADED: self = .fileLoaded
        case MPV_EVENT_SEEK: self = .seek
        case MPV_EVENT_PLAYBACK_RESTART: self = .playbackRestart
        case MPV_EVENT_SET_PROPERTY_REPLY: self = .propertySet
        case MPV_EVENT_COMMAND_REPLY where event.reply_userdata == Self.pictureReply:
            let reply = event.data?.assumingMemoryBound(to: mpv_event_command.self).pointee
            self = .picture(event.error >= 0 ? reply.flatMap { Picture($0.result) } : nil)
        case MPV_EVENT_COMMAND_REPLY: self = .reply(id: event.reply_userdata, error: event.error)
        case MPV_EVENT_END_FILE:
            let end = event.data?.assumingMemoryBound(to: mpv_event_end_file.self).pointee
            let error = end?.reason == MPV_END_FILE_REASON_ERROR ? end?.error ?? -1 : 0
            self = .fileEnded(error: error, message: cmpv_error_string(error).map { String(cString: $0) })
        case MPV_EVENT_PROPERTY_CHANGE:
            self = Self.property(event.data?.assumingMemoryBound(to: mpv_event_property.self).pointee)
        default: self = .other
        }
    }

    private static func property(_ property: mpv_event_property?) -> MPVEvent {
        guard let property, let name = property.name.map({ String(cString: $0) }) else { return .other }
        switch property.format {
        case MPV_FORMAT_DOUBLE:
            return .number(name: name, value: property.data?.assumingMemoryBound(to: Double.self).pointee)
        case MPV_FORMAT_FLAG:
            return .flag(name: name, value: property.data?.assumingMemoryBound(to: Int32.self).pointee == 1)
        default:
            return .number(name: name, value: nil)
        }
    }
}

import CMPV

/// One event of libmpv, copied out of its memory.
enum MPVEvent: Sendable, Equatable {
    case none
    case shutDown
    case fileLoaded
    /// The file was let go: at its end, or with libmpv's error code and words.
    case fileEnded(error: Int32, message: String?)
    case seek
    case playbackRestart
    case reply(id: UInt64, error: Int32)
    /// The picture that was asked for; nil if there is none.
    case picture(Picture?)
    /// A property that was set has its value.
    case propertySet
    case number(name: String, value: Double?)
    case flag(name: String, value: Bool)
    case other

    /// The reply of a command that asks for a picture.
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

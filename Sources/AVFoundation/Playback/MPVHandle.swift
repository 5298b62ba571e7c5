import CMPV

/// A libmpv client handle, as far as it is used here: options, commands that do not wait, events, and its end.
///
/// Copies name the same handle. libmpv allows calls from several threads at once, but ``nextEvent(timeout:)`` from
/// one only, and none after ``destroy()``; ``ItemPlayback`` sees to both.
///
/// `@unchecked`: the pointer is libmpv's, and libmpv guards what it points to.
struct MPVHandle: @unchecked Sendable {
    private let pointer: OpaquePointer

    /// Why there is no handle.
    static var failure: String { cmpv_loading_error().map { String(cString: $0) } ?? "libmpv could not be started" }

    /// A started handle; nil if libmpv can't be loaded or has no memory, or the process has set a locale whose numbers it
    /// can't read.
    ///
    /// Options that this libmpv doesn't know are passed over.
    init?(options: [(name: String, value: String)]) {
        guard let pointer = cmpv_create() else { return nil }
        for option in options { cmpv_set_option_string(pointer, option.name, option.value) }
        guard cmpv_initialize(pointer) >= 0 else {
            cmpv_terminate_destroy(pointer)
            return nil
        }
        self.pointer = pointer
    }

    /// Makes `scheme://…` read from a stream; the caller keeps the reader alive until after ``destroy()``.
    func addStream(scheme: String, _ reader: StreamReader) {
        cmpv_stream_cb_add_ro(pointer, scheme, Unmanaged.passUnretained(reader).toOpaque(), openMediaStream)
    }

    /// Asks for an event at every change of these properties.
    func observe(_ names: [String]) {
        for name in names { cmpv_observe_property(pointer, 0, name, formatOfProperty(name)) }
    }

    /// Sends a command; its reply event carries the id.
    func command(_ words: [String], id: UInt64) {
        withArguments(words) { arguments in
            _ = cmpv_command_async(pointer, id, arguments)
        }
    }

    /// Sets a property, without waiting for it; whether an event will say that it is done.
    func set(_ name: String, _ value: String) -> Bool {
        value.withCString { text in
            var text: UnsafePointer<CChar>? = text
            return cmpv_set_property_async(pointer, 0, name, MPV_FORMAT_STRING, &text) >= 0
        }
    }

    /// The next event, after waiting for at most `timeout` seconds (negative: for ever).
    func nextEvent(timeout: Double) -> MPVEvent {
        MPVEvent(cmpv_wait_event(pointer, timeout))
    }

    /// A property that is yes or no, read at once; nil where it has no value.
    func flag(_ name: String) -> Bool? {
        var value: Int32 = 0
        return cmpv_get_property(pointer, name, MPV_FORMAT_FLAG, &value) >= 0 ? value == 1 : nil
    }

    /// A property that is a number, read at once; nil where it has no value.
    func number(_ name: String) -> Double? {
        var value = 0.0
        return cmpv_get_property(pointer, name, MPV_FORMAT_DOUBLE, &value) >= 0 ? value : nil
    }

    /// A property as text, read at once; nil where it has no value.
    func text(_ name: String) -> String? {
        guard let text = cmpv_get_property_string(pointer, name) else { return nil }
        defer { cmpv_free(text) }
        return String(cString: text)
    }

    /// Makes a wait for events return.
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

/// The format in which a property is observed: flags for the yes-or-no ones, numbers for the rest.
private func formatOfProperty(_ name: String) -> mpv_format {
    ["core-idle", "eof-reached", "pause"].contains(name) ? MPV_FORMAT_FLAG : MPV_FORMAT_DOUBLE
}

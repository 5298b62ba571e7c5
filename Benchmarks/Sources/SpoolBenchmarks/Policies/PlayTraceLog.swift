import Foundation
import SpoolStorage

extension PlayTrace {
    /// The fields of an access log line that describe a read.
    private struct LogLine: Decodable {
        var time: String
        var client: String
        var path: String
        var status: Int
        var offset: Int64?
        var length: Int64?
        var bytes: Int64
    }

    /// The current playback session of one client with one resource.
    private struct Session {
        var number: Int32
        var last: Double
        /// The index of the session's last event.
        var event: Int
    }

    /// Reads an access log of `spool serve`.
    ///
    /// It uses responses that contain bytes of a file. Responses to one client for one path, at most ten minutes apart,
    /// form a playback session. All media is treated as tracks, because a log does not show which media an app would
    /// evict after playback.
    ///
    /// - Throws: ``BenchmarkError`` with a line number.
    init(accessLog text: String, name: String) throws {
        var numbers: [String: Int32] = [:]
        var sessions: [String: Session] = [:]
        var resources: [Resource] = []
        var events: [Event] = []
        var count: Int32 = 0
        let decoder = JSONDecoder()
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            guard line.contains(where: { !$0.isWhitespace }) else { continue }
            func refuse(_ why: String) -> BenchmarkError { BenchmarkError("\(name), line \(index + 1): \(why)") }
            guard let entry = try? decoder.decode(LogLine.self, from: Data(line.utf8)),
                let time = (try? Date(entry.time, strategy: .iso8601))?.timeIntervalSince1970
            else { throw refuse("not an entry of an access log") }
            guard [200, 206].contains(entry.status), let offset = entry.offset, offset >= 0, entry.bytes > 0,
                offset < 1 << 46, entry.bytes < 1 << 46
            else { continue }
            let end = Int32((offset + entry.bytes + 65_535) / 65_536)
            let whole = max(end, Int32((min(entry.length ?? 0, 1 << 46) + 65_535) / 65_536))
            let resource = numbers[entry.path] ?? Int32(resources.count)
            if resource == resources.count {
                numbers[entry.path] = resource
                resources.append(Resource(blockCount: whole, kind: .song))
            }
            resources[Int(resource)].blockCount = max(resources[Int(resource)].blockCount, whole)
            let reader = "\(entry.client) \(entry.path)"
            var flags: Flags = []
            if sessions[reader].map({ time - $0.last > EvictionOrder.sessionGap }) ?? true {
                if let previous = sessions[reader] { Self.end(previous, &events) }
                count += 1
                flags = .start
            }
            let first = Int32(offset / 65_536)
            // Lines are written when responses end, so they may be slightly out of order.
            events.append(
                Event(
                    time: max(time, events.last?.time ?? time), resource: resource, first: first, count: end - first,
                    session: flags.contains(.start) ? count : sessions[reader]?.number ?? count, flags: flags))
            sessions[reader] = Session(
                number: events[events.count - 1].session, last: time, event: events.count - 1)
        }
        for session in sessions.values { Self.end(session, &events) }
        for index in events.indices where events[index].flags.contains(.end) {
            let event = events[index]
            if event.first + event.count >= resources[Int(event.resource)].blockCount {
                events[index].flags.insert(.completed)
            }
        }
        self.init(name: name, resources: resources, events: events, hasOneUser: false)
    }

    private static func end(_ session: Session, _ events: inout [Event]) { events[session.event].flags.insert(.end) }
}

import Foundation

extension PlayTrace {
    /// Reads a trace, or an access log of `spool serve`.
    ///
    /// - Throws: ``BenchmarkError`` with a file name and a line number.
    init(file: String) throws {
        let data: Data
        do {
            data = try Data(contentsOf: URL(fileURLWithPath: file))
        } catch {
            throw BenchmarkError("“\(file)” can't be read: \(error.localizedDescription)")
        }
        guard let text = String(data: data, encoding: .utf8) else {
            throw BenchmarkError("“\(file)” is not UTF-8 text")
        }
        if text.first(where: { !$0.isWhitespace }) == "{" {
            try self.init(accessLog: text, name: file)
        } else {
            try self.init(text: text, name: file)
        }
        guard !events.isEmpty else { throw BenchmarkError("“\(file)” contains no reads") }
    }

    /// Reads a trace file, which has three kinds of lines.
    ///
    /// - `r ID BLOCKS CLASS` declares a resource. The class is 0 for a track, 1 for a podcast, 2 for a long video and 3
    ///   for a short one.
    /// - `TIME ID FIRST COUNT SESSION FLAGS` is a read. Reads are in chronological order. The time is in seconds, and a
    ///   block is 64 KiB. `FLAGS` is the sum of 1 (session start), 2 (session end), 4 (end of the resource reached) and
    ///   8 (scan).
    /// - Empty lines, and lines that start with `#`, are ignored.
    ///
    /// - Throws: ``BenchmarkError`` with a line number.
    init(text: String, name: String) throws {
        var numbers: [String: Int32] = [:]
        var resources: [Resource] = []
        var events: [Event] = []
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            let fields = line.split(whereSeparator: \.isWhitespace)
            guard let first = fields.first, !first.hasPrefix("#") else { continue }
            func refuse(_ why: String) -> BenchmarkError { BenchmarkError("\(name), line \(index + 1): \(why)") }
            if first == "r" {
                guard fields.count == 4, let blocks = Int32(fields[2]), (1...1 << 30).contains(blocks),
                    let kind = Int(fields[3]).flatMap(Kind.init)
                else { throw refuse("not “r ID BLOCKS CLASS”") }
                guard numbers.updateValue(Int32(resources.count), forKey: String(fields[1])) == nil else {
                    throw refuse("resource \(fields[1]) is declared twice")
                }
                resources.append(Resource(blockCount: blocks, kind: kind))
                continue
            }
            guard fields.count == 6, let time = Double(fields[0]), time.isFinite, let begin = Int32(fields[2]),
                let count = Int32(fields[3]), let session = Int32(fields[4]), let flags = UInt8(fields[5])
            else { throw refuse("expected “TIME ID FIRST COUNT SESSION FLAGS”") }
            guard let resource = numbers[String(fields[1])] else { throw refuse("no resource \(fields[1])") }
            guard begin >= 0, count >= 0, begin <= resources[Int(resource)].blockCount - count else {
                throw refuse("the blocks extend beyond the end of the resource")
            }
            guard time >= events.last?.time ?? time else { throw refuse("the event is earlier than the previous one") }
            events.append(
                Event(
                    time: time, resource: resource, first: begin, count: count, session: session,
                    flags: Flags(rawValue: flags)))
        }
        self.init(name: name, resources: resources, events: events)
    }
}

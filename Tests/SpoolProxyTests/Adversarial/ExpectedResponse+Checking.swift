import SpoolTesting

extension ExpectedResponse {
    /// Returns a description of what is wrong with a response; `nil` if the response is correct.
    func problem(of response: StrictResponseReader.Response, isLast: Bool) -> String? {
        guard statuses.contains(response.status) else {
            return "status \(response.status) instead of one of \(statuses.sorted())"
        }
        if isLast, !response.closes, !isOld { return "the last response does not close the connection" }
        for name in [
            "content-length", "content-range", "content-type", "date", "etag", "age", "content-security-policy",
        ]
        where response.fields.count(where: { $0.name == name }) > 1 { return "\(name) twice" }
        guard response["date"] != nil else { return "no Date" }
        guard [200, 206, 304, 416].contains(response.status) else { return nil }
        switch content {
        case .any: return nil
        case .health: return isHead || response.body == Array("ok\n".utf8) ? nil : "the health page has other words"
        case .media(let media, let ranges): return problem(of: response, media, ranges)
        }
    }

    private func problem(
        of response: StrictResponseReader.Response, _ media: AdversarialMedia, _ ranges: [Range<Int64>]
    ) -> String? {
        // If nothing is stored, the server forwards the origin's 416, which contains the length but no tag.
        let isUntold = response.status == 416 && response["etag"] == nil
        guard response["etag"] == media.tag || isUntold else {
            return "the tag \(response["etag"] ?? "-") instead of \(media.tag)"
        }
        switch response.status {
        case 200:
            if isHead { return response["content-length"] == "\(media.length)" ? nil : "HEAD states another length" }
            return mismatch(response.body[...], media, 0..<media.length)
        case 206:
            if let text = response["content-range"] {
                guard ranges.count == 1,
                    text == "bytes \(ranges[0].lowerBound)-\(ranges[0].upperBound - 1)/\(media.length)"
                else {
                    return "the range \(text) instead of \(ranges)"
                }
                return mismatch(response.body[...], media, ranges[0])
            }
            return problem(ofParts: response, media, ranges)
        case 416:
            return response["content-range"] == "bytes */\(media.length)" ? nil : "a 416 without the length"
        default: return nil
        }
    }

    private func mismatch(_ bytes: ArraySlice<UInt8>, _ media: AdversarialMedia, _ range: Range<Int64>) -> String? {
        guard bytes.count == range.count else { return "\(bytes.count) bytes instead of \(range.count)" }
        do {
            try media.pattern.verify(bytes, at: range.lowerBound)
            return nil
        } catch {
            return "\(error)"
        }
    }

    private func problem(
        ofParts response: StrictResponseReader.Response, _ media: AdversarialMedia, _ ranges: [Range<Int64>]
    ) -> String? {
        let prefix = "multipart/byteranges; boundary="
        guard ranges.count > 1, let type = response["content-type"], type.hasPrefix(prefix) else {
            return "parts that were not requested"
        }
        let boundary = type.dropFirst(prefix.count).filter { $0 != "\"" }
        var rest = response.body[...]
        for range in ranges {
            guard let end = rest.firstRange(of: Array("\r\n\r\n".utf8)) else { return "a part without a head" }
            let head = String(decoding: rest[..<end.lowerBound], as: UTF8.self)
            guard head.contains("--" + boundary + "\r\n"),
                head.lowercased().contains(
                    "content-range: bytes \(range.lowerBound)-\(range.upperBound - 1)/\(media.length)")
            else { return "the part \(head.debugDescription) instead of \(range)" }
            rest = rest[end.upperBound...]
            if let problem = mismatch(rest.prefix(range.count), media, range) { return problem }
            rest = rest.dropFirst(range.count)
        }
        let closing = String(decoding: rest, as: UTF8.self)
        return closing.hasPrefix("\r\n--\(boundary)--") ? nil : "the parts' end is \(closing.debugDescription)"
    }
}

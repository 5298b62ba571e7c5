import SpoolTesting

/// A random request from a user in a sharing test.
struct SharingRequest: Sendable {
    /// The number of the request within the run, which is sent as `X-Call`.
    let number: Int
    let user: Int
    let method: String
    let page: Int
    /// The fields that may select a response, or that identify the user.
    let fields: [String: String]
    /// The directives of the request; `nil` if there are none.
    let control: String?
    let range: Range<Int>?
    /// Whether the client may disconnect before it has received the response.
    let mayLeave: Bool

    static func draw(
        _ number: Int, of pages: [SharedPage], users: Int, _ random: inout SplitMix
    ) -> SharingRequest {
        let (user, page) = (random.below(users), random.below(pages.count))
        var fields = ["x-user": "u\(user)"]
        if random.chance(3) {
            fields["authorization"] = random.chance(2) ? "Basic u\(user)" : "Basic all"
        }
        if random.chance(3) { fields["cookie"] = random.chance(2) ? "sid=u\(user)" : "theme=dark" }
        if random.chance(2) { fields["accept-language"] = random.pick(["en", "de"]) }
        if pages[page].isMedia {
            var range: Range<Int>?
            if pages[page].kind == .mediaInParts {
                let start = random.below(pages[page].length)
                range = start..<start + 1 + random.below(pages[page].length - start)
            }
            return SharingRequest(
                number: number, user: user, method: "GET", page: page, fields: fields, control: nil,
                range: range,
                mayLeave: false)
        }
        var control: String?
        if random.chance(8) {
            control = random.pick([
                "no-cache", "no-store", "max-age=0", "max-age=3", "max-stale=10", "only-if-cached",
            ])
        }
        return SharingRequest(
            number: number, user: user,
            method: random.chance(12) ? random.pick(["HEAD", "POST"]) : "GET", page: page,
            fields: fields, control: control, range: nil, mayLeave: random.chance(20))
    }

    /// Returns the text of the request.
    func text(to path: String) -> String {
        var lines = ["\(method) \(path) HTTP/1.1", "Host: localhost", "X-Call: \(number)"]
        lines += fields.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
        if let control { lines.append("Cache-Control: \(control)") }
        if let range { lines.append("Range: bytes=\(range.lowerBound)-\(range.upperBound - 1)") }
        if method == "POST" { lines.append("Content-Length: 0") }
        return lines.joined(separator: "\r\n") + "\r\n\r\n"
    }
}

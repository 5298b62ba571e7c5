import HTTPRanges
import HTTPTypes
import Testing

private let modified = "Sun, 06 Nov 1994 08:49:37 GMT"
private let later = "Sun, 06 Nov 1994 09:49:37 GMT"
private let laterDate = HTTPDate(secondsSince1970: 784_115_377)

/// Cases A1 to A19: responses that match the stored version, and responses that do not.
@Suite struct VersionEvaluationTests {
    @Test("A1: a part with a different strong tag starts a new version at the stated offset")
    func otherTag() throws {
        let range = ("Content-Range", "bytes 500-599/1000")
        let response = makeResponse(206, ("ETag", "\"b\""), range, ("Content-Length", "100"))
        for rule in [CombiningRule.strong, .immutable] {
            let placement = try #require(evaluate(response, stored: stored(), rule: rule).renewed)
            #expect(placement.offset == 500)
            #expect(placement.end == 600)
            #expect(placement.version.validator.entityTag?.value == "b")
            #expect(placement.version.length == 1000)
        }
    }

    @Test("E280: a 203 response is used like a 200 response")
    func transformed() throws {
        let response = makeResponse(203, ("ETag", "\"a\""), ("Content-Length", "1000"))
        let placement = try #require(evaluate(response, from: nil, end: nil).accepted)
        #expect(placement.offset == 0 && placement.end == 1000)
    }

    @Test("A1: a part with the same strong tag is combined with the stored version, whose description does not change")
    func sameTag() throws {
        let response = makeResponse(206, ("ETag", "\"a\""), ("Content-Range", "bytes 500-599/*"))
        let placement = try #require(evaluate(response, stored: stored()).accepted)
        #expect(placement.offset == 500)
        #expect(placement.end == 600)
        #expect(placement.version == stored().version)
        #expect(placement.discrepancy == nil)
    }

    @Test(
        "A3: under the strong rule, a part without a strong validator restarts the request, unless it starts at byte 0")
    func unprovenStrong() throws {
        for tag in ["W/\"a\"", nil] {
            let response = makeResponse(206, ("Content-Range", "bytes 500-599/1000"), ("ETag", tag ?? ""))
            #expect(evaluate(response, stored: stored(tag: tag)).isRestart)
            let first = makeResponse(206, ("Content-Range", "bytes 0-599/1000"), ("ETag", tag ?? ""))
            #expect(evaluate(first, stored: stored(tag: tag)).renewed?.offset == 0)
            #expect(evaluate(response, stored: stored(tag: tag, end: 0)).renewed?.offset == 500)
        }
    }

    @Test("A3: under the strong rule, Last-Modified proves a version only if it is at least 60 s older than Date")
    func lastModified() throws {
        let range = ("Content-Range", "bytes 500-599/1000")
        let response = makeResponse(206, range, ("Last-Modified", modified), ("Date", later))
        let held = stored(tag: nil, modified: modified, date: laterDate)
        #expect(evaluate(response, stored: held).accepted?.offset == 500)
        let fresh = makeResponse(206, range, ("Last-Modified", modified), ("Date", "Sun, 06 Nov 1994 08:50:36 GMT"))
        #expect(evaluate(fresh, stored: held).isRestart)
        let changed = makeResponse(206, range, ("Last-Modified", "Sun, 06 Nov 1994 08:49:38 GMT"), ("Date", later))
        for rule in [CombiningRule.strong, .immutable] {
            #expect(evaluate(changed, stored: held, rule: rule).renewed?.offset == 500)
        }
    }

    @Test("A3: under the immutable rule, parts are combined unless their length, type or validator differs")
    func immutable() throws {
        func decision(_ pairs: (String, String)..., length: String = "1000") -> PartialResponse.Decision {
            var response = makeResponse(206, ("Content-Range", "bytes 500-599/\(length)"))
            response.headerFields.append(contentsOf: fields(pairs))
            return evaluate(response, stored: stored(tag: "W/\"a\""), rule: .immutable)
        }
        #expect(decision().accepted?.offset == 500)
        #expect(decision(length: "*").accepted?.offset == 500)
        #expect(decision(("ETag", "W/\"a\"")).accepted?.offset == 500)
        #expect(decision(("ETag", "\"a\"")).accepted?.offset == 500)
        #expect(decision(("Content-Type", "Audio/MPEG ; x=y")).accepted?.offset == 500)
        #expect(decision(length: "1001").renewed?.offset == 500)
        #expect(decision(("ETag", "W/\"b\"")).renewed?.offset == 500)
        #expect(decision(("Content-Type", "video/mp4")).renewed?.offset == 500)
    }

    @Test("A3: if parts were combined without proof, their validator can show a change, but cannot prove equality")
    func joinedWithoutProof() throws {
        let response = makeResponse(206, ("Content-Range", "bytes 500-599/1000"), ("ETag", "\"a\""))
        let placement = try #require(evaluate(response, stored: stored(tag: nil), rule: .immutable).accepted)
        #expect(placement.version.validator.entityTag?.text == "W/\"a\"")
        #expect(!placement.version.canBeAssembled(under: .strong))
        let held = StoredVersion(version: placement.version, storedEnd: 600)
        let next = makeResponse(206, ("Content-Range", "bytes 600-699/1000"), ("ETag", "\"a\""))
        #expect(evaluate(next, from: 600, end: 700, stored: held, rule: .strong).isRestart)
        #expect(evaluate(next, from: 600, end: 700, stored: held, rule: .immutable).accepted?.offset == 600)
        let other = makeResponse(206, ("Content-Range", "bytes 600-699/1000"), ("ETag", "\"b\""))
        #expect(evaluate(other, from: 600, end: 700, stored: held, rule: .immutable).renewed?.offset == 600)
    }

    @Test("A4: a 200 with a different version starts a new version at byte 0")
    func otherWhole() throws {
        let response = makeResponse(200, ("ETag", "\"b\""), ("Content-Length", "900"))
        for rule in [CombiningRule.strong, .immutable] {
            let placement = try #require(evaluate(response, stored: stored(), rule: rule).renewed)
            #expect(placement.offset == 0)
            #expect(placement.end == 900)
            #expect(placement.version.length == 900)
        }
    }

    @Test("A5: a 200 with the same version is stored from byte 0, not from the requested offset")
    func sameWhole() throws {
        let response = makeResponse(200, ("ETag", "\"a\""), ("Content-Length", "1000"))
        let placement = try #require(evaluate(response, stored: stored()).accepted)
        #expect(placement.offset == 0)
        #expect(placement.end == 1000)
    }

    @Test("A5: a 200 without validators joins the stored version under the immutable rule, and replaces it otherwise")
    func unprovenWhole() {
        let response = makeResponse(200, ("Content-Length", "1000"), ("Content-Type", "audio/mpeg"))
        #expect(evaluate(response, stored: stored(), rule: .immutable).accepted?.offset == 0)
        #expect(evaluate(response, stored: stored(), rule: .strong).renewed?.offset == 0)
        let other = makeResponse(200, ("Content-Length", "1001"), ("Content-Type", "audio/mpeg"))
        #expect(evaluate(other, stored: stored(), rule: .immutable).renewed?.offset == 0)
    }

    @Test("A5, A22: a 200 with the same version but without a length ends at the known length")
    func chunkedWhole() throws {
        let placement = try #require(evaluate(makeResponse(200, ("ETag", "\"a\"")), stored: stored()).accepted)
        #expect(placement.end == 1000)
        #expect(placement.version.length == 1000)
    }

    @Test("A10: a part with an unknown total length is stored, and a known length is retained")
    func unknownTotal() throws {
        let response = makeResponse(206, ("ETag", "\"a\""), ("Content-Range", "bytes 500-599/*"))
        #expect(evaluate(response).accepted?.version.length == nil)
        #expect(evaluate(response, stored: stored(length: nil)).accepted?.version.length == nil)
        #expect(evaluate(response, stored: stored(length: 1000)).accepted?.version.length == 1000)
        let telling = makeResponse(206, ("ETag", "\"a\""), ("Content-Range", "bytes 500-599/700"))
        #expect(evaluate(telling, stored: stored(length: nil)).accepted?.version.length == 700)
    }

    @Test("A11: a different total length with the same tag indicates a different version")
    func otherTotal() {
        for rule in [CombiningRule.strong, .immutable] {
            let part = makeResponse(206, ("ETag", "\"a\""), ("Content-Range", "bytes 500-599/1001"))
            #expect(evaluate(part, stored: stored(), rule: rule).renewed?.offset == 500)
            let whole = makeResponse(200, ("ETag", "\"a\""), ("Content-Length", "999"))
            #expect(evaluate(whole, stored: stored(), rule: rule).renewed?.offset == 0)
        }
    }

    @Test("A11: a total length below the stored end, or a part beyond the stored length, indicates a different version")
    func shrunk() {
        let shorter = makeResponse(206, ("ETag", "\"a\""), ("Content-Range", "bytes 300-399/400"))
        #expect(evaluate(shorter, from: 300, end: 400, stored: stored(length: nil)).renewed?.offset == 300)
        let past = makeResponse(206, ("ETag", "\"a\""), ("Content-Range", "bytes 950-1049/*"))
        #expect(evaluate(past, from: 950, end: 1050, stored: stored()).renewed?.offset == 950)
    }

    @Test("A19: an encoded part is rejected, and an encoded 200 is never combined with bytes in a different encoding")
    func encoded() throws {
        let range = ("Content-Range", "bytes 500-599/1000")
        let part = makeResponse(206, ("content-encoding", "GZIP"), range, ("ETag", "\"a\""))
        #expect(evaluate(part).isMalformed)
        #expect(evaluate(part, stored: stored(), rule: .immutable).isMalformed)
        #expect(evaluate(part, stored: stored(encoding: "gzip"), rule: .immutable).isMalformed)

        let whole = makeResponse(200, ("Content-Encoding", "gzip"), ("ETag", "\"a\""), ("Content-Length", "1000"))
        let placement = try #require(evaluate(whole).accepted)
        #expect(placement.offset == 0)
        #expect(placement.version.contentEncoding == "gzip")
        #expect(evaluate(whole, stored: stored(), rule: .immutable).isMalformed)
        #expect(evaluate(whole, stored: stored(encoding: "br"), rule: .immutable).isMalformed)
        #expect(evaluate(whole, stored: stored(encoding: "gzip")).accepted?.offset == 0)
        #expect(evaluate(whole, stored: stored(tag: nil, encoding: "gzip"), rule: .immutable).renewed?.offset == 0)
    }

    @Test("A19: unencoded bytes are never combined with encoded bytes; the encoding “identity” counts as no encoding")
    func plainAfterEncoded() {
        let range = ("Content-Range", "bytes 500-599/1000")
        let plain = makeResponse(206, range, ("ETag", "\"a\""), ("Content-Encoding", "Identity"))
        #expect(evaluate(plain, stored: stored(encoding: "gzip"), rule: .immutable).renewed?.offset == 500)
        #expect(evaluate(plain, stored: stored()).accepted?.version.contentEncoding == nil)
        let twice = makeResponse(206, range, ("Content-Encoding", "identity"), ("Content-Encoding", "br"))
        #expect(evaluate(twice).isMalformed)
    }

    @Test(
        "E221: an unknown Content-Encoding counts as no encoding",
        arguments: ["aws-chunked", "none", "UTF-8", "", "binary", "identity, utf-8"])
    func unknownEncoding(_ name: String) {
        let part = makeResponse(
            206, ("Content-Range", "bytes 500-599/1000"), ("ETag", "\"a\""), ("Content-Encoding", name))
        #expect(evaluate(part, stored: stored()).accepted?.version.contentEncoding == nil)
        let both = makeResponse(206, ("Content-Range", "bytes 500-599/1000"), ("Content-Encoding", "\(name), gzip"))
        #expect(evaluate(both).isMalformed)
    }

    @Test(
        "E222: without a valid Content-Range, a part is used if its length proves its position",
        arguments: [
            (nil, nil), ("500-599/1000", 1000), ("500-600/1000", 1000), ("bytes=500-599/1000", 1000),
            ("bytes: 500-599/1000", 1000), ("bytes  500 - 599 / 1000 ", 1000), ("bytes 500-599", nil),
            ("bytes 500-599/", nil), ("500-1000/1000", 1000),
        ] as [(String?, Int64?)])
    func malformedContentRange(_ value: String?, _ length: Int64?) {
        func part(_ count: Int) -> HTTPResponse {
            let pairs =
                [("ETag", "\"a\""), ("Content-Length", "\(count)")] + (value.map { [("Content-Range", $0)] } ?? [])
            return HTTPResponse(status: .partialContent, headerFields: fields(pairs))
        }
        let placement = evaluate(part(100), stored: stored()).accepted
        #expect(placement?.offset == 500)
        #expect(placement?.end == 600)
        let first = evaluate(part(100)).accepted
        #expect(first?.offset == 500)
        #expect(first?.version.length == length)
        // The length does not prove the position of a different part, a longer body, or a body without a length.
        #expect(evaluate(part(101)).isMalformed)
        #expect(evaluate(part(0)).isMalformed)
        if value != nil { #expect(evaluate(part(100), from: 400, end: 500).isMalformed) }
        let unknown = value.map { makeResponse(206, ("Content-Range", $0)) } ?? makeResponse(206)
        #expect(evaluate(unknown).isMalformed)
    }
}

/// Cases A1 to A19: responses that contradict themselves or the request, and responses without media bytes.
@Suite struct ResponseEvaluationTests {
    @Test("A6: a part is stored at its stated offset if it overlaps the requested range, and rejected otherwise")
    func elsewhere() throws {
        func decision(_ range: String, from: Int64? = 500, end: Int64? = 600) -> PartialResponse.Decision {
            evaluate(makeResponse(206, ("Content-Range", "bytes \(range)/1000")), from: from, end: end)
        }
        #expect(decision("450-549").accepted?.offset == 450)
        #expect(decision("550-649").accepted?.offset == 550)
        #expect(decision("0-999").accepted?.offset == 0)
        #expect(decision("400-499").isMalformed)
        #expect(decision("600-699").isMalformed)
        #expect(decision("599-699").accepted?.offset == 599)
        #expect(decision("400-500").accepted?.offset == 400)
        #expect(decision("600-699", end: nil).accepted?.offset == 600)
        #expect(decision("300-399", from: nil, end: nil).accepted?.offset == 300)
        #expect(decision("0-99", from: .min, end: .max).accepted?.offset == 0)
        #expect(decision("600-699", from: 500, end: 20).isMalformed)
    }

    @Test("A7: a body that is shorter than its Content-Range is stored up to its end, and the discrepancy is reported")
    func shorterBody() throws {
        let response = makeResponse(
            206, ("Content-Range", "bytes 500-599/1000"), ("Content-Length", "50"), ("ETag", "\"a\""))
        for held in [stored(), nil] {
            let placement = try #require(evaluate(response, stored: held).accepted)
            #expect(placement.offset == 500)
            #expect(placement.end == 550)
            #expect(placement.discrepancy?.contains("Content-Length 50") == true)
            #expect(placement.version.length == held?.version.length)
        }
        let other = makeResponse(
            206, ("Content-Range", "bytes 500-599/1000"), ("Content-Length", "50"), ("ETag", "\"b\""))
        #expect(evaluate(other, stored: stored()).isMalformed)
        let empty = makeResponse(206, ("Content-Range", "bytes 500-599/1000"), ("Content-Length", "0"))
        #expect(evaluate(empty, from: 450).isMalformed)
        // The remaining part must still overlap the requested range.
        #expect(
            evaluate(makeResponse(206, ("Content-Range", "bytes 400-599/1000"), ("Content-Length", "50"))).isMalformed)
    }

    @Test("A7: a body longer than its Content-Range is rejected unless the range starts at byte 0")
    func longerBody() throws {
        let response = makeResponse(206, ("Content-Range", "bytes 500-599/1000"), ("Content-Length", "1000"))
        #expect(evaluate(response).isMalformed)
        let first = makeResponse(206, ("Content-Range", "bytes 0-99/1000"), ("Content-Length", "1000"))
        let placement = try #require(evaluate(first, from: 0, end: 100).accepted)
        #expect(placement.offset == 0)
        #expect(placement.end == 100)
        #expect(placement.discrepancy != nil)
    }

    @Test("A8, A9: the length comes from the headers; a chunked response has an unknown length")
    func lengths() {
        let known = evaluate(makeResponse(200, ("Content-Length", "1000")), from: nil, end: nil).accepted
        #expect(known?.version.length == 1000)
        #expect(known?.end == 1000)
        let chunked = evaluate(makeResponse(200, ("Transfer-Encoding", "chunked")), from: nil, end: nil).accepted
        #expect(chunked?.version.length == nil)
        #expect(chunked?.end == nil)
        let both = makeResponse(200, ("Transfer-Encoding", "chunked"), ("Content-Length", "7"))
        #expect(evaluate(both).accepted?.end == nil)
    }

    @Test(
        "A6: responses with missing, malformed or contradictory header fields are rejected",
        arguments: [
            makeResponse(206), makeResponse(206, ("Content-Range", "bytes */1000")),
            makeResponse(206, ("Content-Range", "bytes 5-2/9")),
            makeResponse(206, ("Content-Range", "500-599/1000")),
            makeResponse(206, ("Content-Range", "bytes 500-599/1000"), ("content-range", "bytes 500-599/1000")),
            makeResponse(206, ("Content-Range", "bytes 500-599/1000"), ("Content-Range", "bytes 0-99/1000")),
            makeResponse(206, ("Content-Range", "bytes 500-599/1000"), ("Content-Length", "100, 99")),
            makeResponse(206, ("Content-Range", "bytes 500-599/1000"), ("Content-Length", "-1")),
            makeResponse(200, ("Content-Length", "1000"), ("Content-Length", "999")),
            makeResponse(200, ("Content-Length", "x")),
            makeResponse(200, ("Content-Length", "99999999999999999999")), makeResponse(200, ("Content-Length", "")),
            makeResponse(304),
        ])
    func unbelievable(response: HTTPResponse) {
        #expect(evaluate(response).isMalformed)
    }

    @Test("Repeated identical Content-Length values count as a single value (9110 §8.6)")
    func sameLengthTwice() {
        #expect(evaluate(makeResponse(200, ("Content-Length", "10, 10"), ("content-length", "10"))).accepted?.end == 10)
    }

    @Test("A6: a multipart response to a request for one range is rejected (9110 §15.3.7.2)")
    func multipart() {
        let type = ("Content-Type", "Multipart/ByteRanges; boundary=x")
        #expect(evaluate(makeResponse(206, type)).isMalformed)
        #expect(evaluate(makeResponse(206, type, ("Content-Range", "bytes 500-599/1000"))).isMalformed)
    }

    @Test("A5: a 200 with only a part is rejected, and the Content-Range of any other 200 is ignored (RFC 9110 §14.4)")
    func partAsWhole() throws {
        let part = ("Content-Range", "bytes 500-599/1000")
        #expect(evaluate(makeResponse(200, part, ("Content-Length", "100"))).isMalformed)
        #expect(evaluate(makeResponse(200, part)).isMalformed)
        #expect(
            evaluate(makeResponse(200, ("Content-Range", "bytes 0-99/1000"), ("Content-Length", "100"))).isMalformed)
        let whole = try #require(evaluate(makeResponse(200, part, ("Content-Length", "1000"))).accepted)
        #expect(whole.offset == 0 && whole.end == 1000 && whole.discrepancy != nil)
        let all = try #require(evaluate(makeResponse(200, ("Content-Range", "bytes 0-999/1000"))).accepted)
        #expect(all.offset == 0 && all.end == nil && all.discrepancy == nil)
        #expect(evaluate(makeResponse(200, ("Content-Range", "nonsense"))).accepted?.offset == 0)
    }

    @Test("A12: a 416 that contradicts the stored length or the stored bytes restarts the request")
    func unsatisfiableRestart() {
        func decision(_ length: String?, _ held: StoredVersion, from: Int64 = 1000) -> PartialResponse.Decision {
            let response = length.map { makeResponse(416, ("Content-Range", "bytes */\($0)")) } ?? makeResponse(416)
            return evaluate(response, from: from, end: nil, stored: held)
        }
        #expect(decision("400", stored(length: nil)).isRestart)
        #expect(decision("400", stored()).isRestart)
        #expect(decision("700", stored()).isRestart)
        #expect(decision("1100", stored()).isRestart)
        #expect(decision(nil, stored(), from: 900).isRestart)
        #expect(decision(nil, stored(length: nil), from: 499).isRestart)
        #expect(decision("800", stored(), from: 500).isRestart)
    }

    @Test("A12: a 416 that does not contradict the stored version is reported as unsatisfiable")
    func unsatisfiable() {
        let response = makeResponse(416, ("Content-Range", "bytes */1000"))
        #expect(evaluate(response, from: 1000, stored: stored()) == .unsatisfiable(length: 1000))
        #expect(evaluate(response, from: 1000, stored: stored(length: nil)) == .unsatisfiable(length: 1000))
        #expect(evaluate(response, from: 1000, stored: nil) == .unsatisfiable(length: 1000))
        #expect(evaluate(makeResponse(416), from: 1000, stored: stored()) == .unsatisfiable(length: 1000))
        #expect(evaluate(makeResponse(416), from: 5, stored: nil) == .unsatisfiable(length: nil))
        #expect(evaluate(makeResponse(416), from: 500, stored: stored(length: nil)) == .unsatisfiable(length: nil))
    }

    @Test("A12: a 416 is rejected if the requested bytes lie within the length that it states")
    func unsatisfiableContradiction() {
        let response = makeResponse(416, ("Content-Range", "bytes */1000"))
        #expect(evaluate(response, from: 500, end: 600, stored: stored()).isMalformed)
        #expect(evaluate(response, from: 500, end: 600, stored: nil).isMalformed)
    }

    @Test("A 304 confirms the stored version, unless its validator belongs to a different version")
    func notModified() {
        #expect(evaluate(makeResponse(304), stored: stored()) == .notModified)
        #expect(evaluate(makeResponse(304, ("ETag", "\"a\"")), stored: stored()) == .notModified)
        let other = evaluate(makeResponse(304, ("ETag", "\"b\"")), stored: stored())
        #expect(other == .restart("the origin confirmed a version other than the stored one"))
    }

    @Test(
        "B31: after a response that denies access or reports that the URL is gone, new credentials are requested",
        arguments: [401, 403, 407, 410])
    func credentials(status: Int) {
        let refusal = evaluate(makeResponse(status), stored: stored()).refusal
        #expect(refusal?.kind == .credentials)
        #expect(refusal?.status == status)
    }

    @Test(
        "B29: after a temporary failure, the request is retried, with the delay in Retry-After if it is present",
        arguments: [408, 425, 429, 500, 502, 503, 504, 599])
    func retries(status: Int) {
        #expect(evaluate(makeResponse(status)).refusal?.kind == .retry(after: nil))
        #expect(evaluate(makeResponse(status, ("retry-after", "7"))).refusal?.kind == .retry(after: .seconds(7)))
        #expect(evaluate(makeResponse(status, ("Retry-After", "x"))).refusal?.kind == .retry(after: nil))
    }

    @Test(
        "A response with an unexpected status is not used as media",
        arguments: [100, 0, 999, 201, 204, 205, 226, 300, 301, 302, 307, 308, 400, 404, 405, 412, 417, 600])
    func otherStatus(status: Int) {
        let response = makeResponse(status, ("Content-Length", "100"), ("Content-Range", "bytes 500-599/1000"))
        #expect(evaluate(response, stored: stored()).refusal?.kind == .status)
    }

    @Test(
        "A18: field names are case-insensitive, and a missing Accept-Ranges does not rule out range requests",
        arguments: [
            (nil, nil), ("none", false), ("None", false), ("bytes", true), ("Bytes", true), ("items, BYTES", true),
            ("items", nil), ("", nil),
        ] as [(String?, Bool?)])
    func acceptRanges(value: String?, expected: Bool?) {
        let accepts = value.map { [("ACCEPT-ranges", $0)] } ?? []
        let response = HTTPResponse(status: .ok, headerFields: fields(accepts + [("cONTENT-lENGTH", "5")]))
        #expect(evaluate(response, from: nil, end: nil).accepted?.version.acceptsRanges == expected)
        #expect(evaluate(response, from: nil, end: nil).accepted?.end == 5)
        var part = HTTPResponse(status: .partialContent, headerFields: fields(accepts))
        part.headerFields.append(HTTPField(name: .contentRange, value: "bytes 500-599/1000"))
        #expect(evaluate(part).accepted?.version.acceptsRanges == true)
    }

    @Test("The reason for rejecting a response starts with its status, and contains the status only once")
    func sentences() throws {
        let responses = [
            makeResponse(206, ("Content-Length", "101")), makeResponse(206, ("Content-Range", "bytes */1000")),
            makeResponse(206, ("Content-Range", "bytes 500-599/1000"), ("Content-Range", "bytes 0-1/2")),
            makeResponse(206, ("Content-Type", "multipart/byteranges; boundary=B")),
            makeResponse(200, ("Content-Range", "bytes 500-599/1000"), ("Content-Length", "100")), makeResponse(404),
        ]
        for response in responses {
            guard case .refuse(let refusal) = evaluate(response) else {
                Issue.record("\(response) is not rejected")
                continue
            }
            let status = "\(response.status.code)"
            #expect(refusal.reason.hasPrefix(status + ": "))
            #expect(!refusal.reason.dropFirst(status.count).contains(status), "\(refusal.reason)")
        }
    }
}

import Testing

@testable import Spool

@Suite("Content types")
struct ContentTypesTests {
    @Test(
        "E62: a page instead of media is not another version of the media",
        arguments: ["text/html", "TEXT/HTML; charset=utf-8", "application/xhtml+xml", "application/json", "text/plain"])
    func page(_ type: String) {
        #expect(!ContentTypes.isPlausible(type, inPlaceOf: "video/mp4"))
        #expect(ContentTypes.isPlausible(type, inPlaceOf: "text/html"))
        #expect(ContentTypes.isPlausible(type, inPlaceOf: nil))
    }

    @Test(
        "Media or an unknown type instead of media may be another version",
        arguments: ["audio/mpeg", "application/octet-stream", nil])
    func media(_ type: String?) {
        #expect(ContentTypes.isPlausible(type, inPlaceOf: "video/mp4"))
    }
}

import Foundation
import HTTPTypes
import Spool
import Testing

@testable import SpoolCLI

@Suite("Command line arguments")
struct ArgumentTests {
    @Test(
        "Sizes have units of 1000 (K, M, G) or 1024 (KiB, MiB, GiB), in any letter case",
        arguments: [
            ("0", 0), ("65536", 65536), ("500MB", 500_000_000), ("500mb", 500_000_000), ("2GiB", 2 << 30),
            ("1K", 1000), ("1KiB", 1024), ("1.5GB", 1_500_000_000), ("0.5KiB", 512), ("3 TB", 3_000_000_000_000),
            ("1TiB", 1 << 40), ("7B", 7), ("9007199254740992", 1 << 53),
        ] as [(String, Int64)])
    func sizes(text: String, bytes: Int64) {
        #expect(ByteCount(argument: text)?.bytes == bytes)
    }

    @Test(
        "Malformed sizes are rejected",
        arguments: [
            "", "MB", "-1", "1XB", "1 000", "1..5GB", ".", "9223372036854775807", "9007199254740993", "9008TB",
            "10000000TB", "1e9", "٣MB",
        ])
    func badSizes(text: String) {
        #expect(ByteCount(argument: text) == nil)
    }

    @Test("Ages are numbers with a unit, and other text is rejected")
    func ages() {
        for (text, seconds) in [("90s", 90), ("30m", 1800), ("12h", 43_200), ("30d", 2_592_000), ("1.5m", 90)] {
            #expect(DurationArgument(argument: text)?.duration == .seconds(seconds), "\(text)")
        }
        for text in ["", "d", "30", "-1d", "0d", "+1d", "1w", "1e9d", "nand", "infd", " 1d", "99999d", "٣d"] {
            #expect(DurationArgument(argument: text) == nil, "\(text)")
        }
    }

    @Test(
        "Sizes are shown in bytes, kB, MB or GB",
        arguments: [
            (0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (1000, "1.0 kB"), (19_861_943, "19.9 MB"),
            (999_960, "1.0 MB"), (2_147_483_648, "2.1 GB"),
        ] as [(Int64, String)])
    func shownSizes(bytes: Int64, text: String) {
        #expect(ByteCount(bytes: bytes).text == text)
    }

    @Test(
        "Ranges use HTTP syntax: both ends are inclusive, and a leading minus selects the last bytes",
        arguments: [
            ("0-0", .bytes(0..<1)), ("0-99", .bytes(0..<100)), ("100-", .from(100)), ("-500", .suffix(500)),
            ("-0", .suffix(0)), ("5-9223372036854775807", .from(5)),
        ] as [(String, MediaRange)])
    func ranges(text: String, range: MediaRange) {
        #expect(RangeArgument(argument: text)?.range == range)
    }

    @Test(
        "A17: a range argument that is not a single valid range is rejected",
        arguments: ["", "-", "5-2", "a-b", "0-1,3-4", "0-1,", "bytes=0-1", "--5", "1", "0x1-2", "1-2-3"])
    func badRanges(text: String) {
        #expect(RangeArgument(argument: text) == nil)
    }

    @Test("A seek consists of two nonnegative times")
    func seeks() {
        #expect(SeekArgument(argument: "5:40.5") == SeekArgument(at: 5, to: 40.5))
        for text in ["", "5", "5:", ":5", "1:2:3", "-1:5", "5:-1", "a:b", "inf:1", "nan:1"] {
            #expect(SeekArgument(argument: text) == nil, "\(text)")
        }
    }

    @Test("A header field is a name, a colon and a value without line breaks")
    func headers() throws {
        let header = try #require(HeaderArgument(argument: "Authorization:  Bearer a:b "))
        #expect(header.field.name.canonicalName == "authorization")
        #expect(header.field.value == "Bearer a:b")
        #expect(HeaderArgument(argument: "X-Empty:")?.field.value == "")
        for text in ["", "no colon", ": value", "a b: c", "X: one\r\nY: two"] {
            #expect(HeaderArgument(argument: text) == nil, "\(text)")
        }
    }

    @Test("URLs must have the scheme http or https and a host; play also accepts files")
    func addresses() {
        #expect(MediaURL(argument: "HTTP://h/a.mp3") != nil)
        for text in [
            "http://h/Show%20S01/[HD] é%.mp3?a=|&b=%2F", "http://h/Show%20S01/%5BHD%5D%20é%25.mp3?a=%7C&b=%2F",
        ] {
            #expect(
                MediaURL(argument: text)?.url.absoluteString
                    == "http://h/Show%20S01/%5BHD%5D%20%C3%A9%25.mp3?a=%7C&b=%2F")
        }
        for text in ["", "a.mp3", "/a.mp3", "ftp://h/a", "file:///a", "http:///a", "http:a", "https://"] {
            #expect(MediaURL(argument: text) == nil, "\(text)")
        }
        #expect(PlayableURL(argument: "song.mp3")?.url.isFileURL == true)
        #expect(PlayableURL(argument: "C: side.mp3")?.url.isFileURL == true)
        #expect(PlayableURL(argument: "https://h/a.mp3")?.url.scheme == "https")
        #expect(PlayableURL(argument: "http://") == nil)
    }

    @Test("E76: HOME sets the home directory only if its value is an absolute path")
    func home() {
        let recorded = FileManager.default.homeDirectoryForCurrentUser
        #expect(CacheLocation.home(environment: ["HOME": "/tmp/x"]).path == "/tmp/x")
        #expect(CacheLocation.home(environment: ["HOME": "relative"]) == recorded)
        #expect(CacheLocation.home(environment: [:]) == recorded)
    }

    @Test("--header accepts a field or a file, and --capacity accepts a size or “none”")
    func options() {
        #expect(HeaderOption(argument: "@a b") == .file("a b"))
        #expect(HeaderOption(argument: "A: b") == HeaderArgument(argument: "A: b").map { .field($0) })
        #expect(HeaderOption(argument: "@") == nil && HeaderOption(argument: "A") == nil)
        #expect(CapacityOptions.Capacity(argument: "NONE")?.inLibrary == .unlimited)
        #expect(
            CapacityOptions.Capacity(argument: "1KiB") == .bytes(1024) && CapacityOptions.Capacity(argument: "x") == nil
        )
    }

    @Test("The cache directory is determined by the option, then by SPOOL_CACHE, and then by the platform")
    func location() {
        let home = URL(fileURLWithPath: "/home/ada")
        func path(_ option: String?, _ environment: [String: String]) -> String {
            CacheLocation.directory(option: option, environment: environment, home: home).path
        }
        #expect(path("/a", ["SPOOL_CACHE": "/b"]) == "/a")
        #expect(path(nil, ["SPOOL_CACHE": "/b", "XDG_CACHE_HOME": "/c"]) == "/b")
        #if !canImport(Darwin)
        #expect(path(nil, ["SPOOL_CACHE": "", "XDG_CACHE_HOME": "/c"]) == "/c/spool")
        #expect(path(nil, ["XDG_CACHE_HOME": "relative"]) == "/home/ada/.cache/spool")
        #expect(path(nil, [:]) == "/home/ada/.cache/spool")
        #else
        #expect(path(nil, [:]) == "/home/ada/Library/Caches/spool")
        #endif
    }
}

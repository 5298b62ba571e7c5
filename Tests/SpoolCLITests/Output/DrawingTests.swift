import ByteRanges
import Testing

@testable import SpoolCLI

@Suite("Terminal output")
struct DrawingTests {
    @Test("The bar shows the stored parts of a resource, and a cell is full only if all of its bytes are stored")
    func bar() {
        let storedRanges: ByteRangeSet = [0..<100, 130..<150, 199..<200, 300..<399]
        #expect(RangeBar.text(storedRanges, length: 400, cells: 4) == "█░·▓")
        #expect(RangeBar.text([], length: 400, cells: 4) == "····")
        #expect(RangeBar.text([0..<400], length: 400, cells: 4) == "████")
        #expect(RangeBar.text([0..<400], length: nil, cells: 4) == "····")
        #expect(RangeBar.text([0..<1], length: 0, cells: 4) == "····")
        #expect(RangeBar.text([0..<400], length: 400, cells: 0) == "")
    }

    @Test("A bar shrinks to the available width, and is omitted if it would be too short")
    func room() {
        #expect(RangeBar.cells(upTo: 20, in: nil) == 20)
        #expect(RangeBar.cells(upTo: 20, in: 50) == 20)
        #expect(RangeBar.cells(upTo: 20, in: 12) == 12)
        for room in [9, 0, -7] { #expect(RangeBar.cells(upTo: 20, in: room) == 0) }
    }

    @Test("Nothing is drawn on a terminal that does not support control sequences", arguments: [nil, "", "dumb"])
    func plainTerminal(name: String?) {
        #expect(!Output.canDraw(terminal: name))
        #expect(Output.canDraw(terminal: "xterm-256color"))
    }

    @Test(
        "The cells of a bar represent every byte, even if there are more cells than bytes",
        arguments: [1, 3, 40, 41, 1_000_003])
    func cells(length: Int64) {
        #expect(RangeBar.text([0..<length], length: length, cells: 40) == String(repeating: "█", count: 40))
        let covered = ByteRangeSet((0..<40).map { RangeBar.range(ofCell: $0, of: 40, length: length) })
        #expect(covered == [0..<length])
    }

    @Test("The progress line shows bytes, rate and remaining time, and is shortened to the width of the terminal")
    func progress() {
        let line = ProgressLine(
            name: "film.mp4", done: 10_000_000, goal: 30_000_000, rate: 4_000_000, storedRanges: [0..<10_000_000],
            length: 30_000_000)
        let text = line.text(columns: 200)
        for part in ["film.mp4 ▕█████████████", "·▏ ", "10.0 MB of 30.0 MB", "4.0 MB/s", "0:05 left"] {
            #expect(text.contains(part), "\(text)")
        }
        for columns in [200, 90, 60, 40, 10, 1, 0] { #expect(line.text(columns: columns).count <= max(0, columns - 1)) }
        #expect(line.text(columns: 80).hasPrefix("film.mp4 ▕███"))
        #expect(line.text(columns: 60).hasPrefix("▕███"))
        #expect(line.text(columns: 50).hasPrefix("10.0 MB of"))
    }

    @Test("Without a target size or a rate, no remaining time is shown")
    func unknownGoal() {
        #expect(ProgressLine(name: "a", done: 5).text(columns: 20) == "5 bytes")
        #expect(!ProgressLine(name: "a", done: 5, goal: 9, rate: 0).text(columns: 90).contains("left"))
    }

    @Test(
        "Times are formatted as minutes and seconds, with hours if necessary",
        arguments: [(0, "0:00"), (6.2, "0:07"), (75, "1:15"), (3723, "1:02:03")])
    func clock(seconds: Double, text: String) {
        #expect(ProgressLine.clock(seconds) == text)
        #expect(ProgressLine.clock(.infinity) == "–:––")
        #expect(ProgressLine.clock(.nan) == "–:––")
    }

    @Test("The rate is measured over the last few seconds")
    func rate() {
        var rate = RateEstimate()
        #expect(rate.note(0, at: 0) == nil)
        #expect(rate.note(100, at: 0.1) == nil)
        #expect(rate.note(1000, at: 1) == 1000)
        for second in 2...20 { _ = rate.note(1000, at: Double(second)) }
        #expect(rate.note(1000, at: 21) == 0)
    }
}

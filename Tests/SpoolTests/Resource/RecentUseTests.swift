import Testing

@testable import Spool

@Suite("Uses that are reported to the store")
struct RecentUseTests {
    @Test("A use is reported if it is the first within a second, or if it follows a use of another resource")
    func news() {
        let uses = RecentUse()
        let (film, song) = (uses.newNumber(), uses.newNumber())
        #expect(film != song)
        let inSeconds = [
            uses.note(film, at: .seconds(5)), uses.note(film, at: .seconds(5)),
            uses.note(film, at: .milliseconds(5999)), uses.note(film, at: .seconds(6)),
        ]
        #expect(inSeconds == [true, false, false, true])
        let byTurns = [
            uses.note(song, at: .seconds(6)), uses.note(film, at: .seconds(6)), uses.note(film, at: .seconds(6)),
            uses.note(song, at: .seconds(6)),
        ]
        #expect(byTurns == [true, true, false, true])
    }
}

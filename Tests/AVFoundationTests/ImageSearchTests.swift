import Foundation
import Testing

@testable import AVFoundation

@Suite("Search for the frame at a given time", .timeLimit(.minutes(10)))
struct ImageSearchTests {
    private let picture = Picture(width: 1, height: 1, bytesPerRow: 4, data: Data(count: 4))

    @Test("Whatever the seeks find, the search for a frame ends after a few seeks, and never returns a missing frame")
    func ends() throws {
        var random = SystemRandomNumberGenerator()
        let values = [-1, 0, 0.04, 5, 11.9, 12, 13, 1e300, .nan, .infinity, -.infinity]
        func any() -> Double { values.randomElement(using: &random) ?? 0 }
        for _ in 0..<20_000 {
            let duration: Double? = Bool.random(using: &random) ? any() : nil
            guard var search = ImageSearch(time: any(), before: any(), after: any(), duration: duration) else {
                continue
            }
            #expect(search.target >= 0 && search.target.isFinite)
            var steps = 0
            while steps < 20 {
                steps += 1
                let found = Snapshot(
                    picture: Bool.random(using: &random) ? picture : nil,
                    seconds: Bool.random(using: &random) ? any() : nil, isAtEnd: Bool.random(using: &random),
                    pictureDuration: Bool.random(using: &random) ? any() : nil)
                let decision = search.evaluate(found)
                if decision == .take { #expect(found.picture != nil && found.seconds != nil && !found.isAtEnd) }
                if case .go(let step) = decision { #expect(step == search.step) } else { break }
            }
            #expect(steps < 10)
        }
    }

    @Test("An image size that is invalid or exceeds the data is rejected")
    func shortData() {
        for (width, height, row) in [(1, 2, 4), (2, 1, 4), (0, 1, 4), (1, 1, -4), (Int.max, 1, 4), (1, Int.max, 4)] {
            #expect(Picture(width: width, height: height, bytesPerRow: row, data: Data(count: 4)) == nil)
        }
    }
}

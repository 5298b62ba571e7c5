import ByteRanges
import Testing

@testable import Spool
@testable import SpoolScheduling

/// The offsets at which the bytes of a response are stored, piece by piece.
struct TransferStateMachineTests {
    typealias Machine = Transfer.StateMachine

    @Test("Pieces are stored one after another, from the requested offset")
    func inOrder() {
        var machine = Machine(offset: 100, end: 1000, asked: 100)
        let actions = [machine.chunk(count: 400, limit: .max), machine.chunk(count: 500, limit: .max)]
        #expect(actions == [.store(skip: 0, count: 400, at: 100), .store(skip: 0, count: 500, at: 500)])
        let end = machine.bodyEnded()
        #expect(end == .complete)
    }

    @Test("A6: a response that starts at a different offset inside a block is stored starting with the next block")
    func elsewhere() {
        var machine = Machine(offset: 1000, end: 200_000, asked: 0)
        let first = machine.firstStoredOffset
        #expect(first == 65_536)
        let actions = [
            machine.chunk(count: 60_000, limit: .max), machine.chunk(count: 10_000, limit: .max),
            machine.chunk(count: 10, limit: .max),
        ]
        #expect(
            actions == [.skip, .store(skip: 4536, count: 5464, at: 65_536), .store(skip: 0, count: 10, at: 71_000)])
    }

    @Test("A7: bytes beyond the stated end are not stored")
    func tooLong() {
        var machine = Machine(offset: 0, end: 100, asked: 0)
        let actions = [machine.chunk(count: 150, limit: .max), machine.chunk(count: 1, limit: .max)]
        #expect(actions == [.store(skip: 0, count: 100, at: 0), .stop])
    }

    @Test("No byte is stored at or beyond the limit")
    func limit() {
        var machine = Machine(offset: 0, end: nil, asked: 0)
        let actions = [machine.chunk(count: 100, limit: 60), machine.chunk(count: 100, limit: 60)]
        #expect(actions == [.store(skip: 0, count: 60, at: 0), .stop])
    }

    @Test("A body whose last piece was only partly stored does not determine the length")
    func cutLastPiece() {
        var machine = Machine(offset: 0, end: nil, asked: 0)
        _ = machine.chunk(count: 100, limit: 60)
        let end = machine.bodyEnded()
        #expect(end == .complete)
    }

    @Test("If the end of a piece could not be stored, the transfer stops, even if the limit has increased since then")
    func cutPiece() {
        var machine = Machine(offset: 0, end: 1000, asked: 0)
        let actions = [machine.chunk(count: 100, limit: 60), machine.chunk(count: 100, limit: 1000)]
        #expect(actions == [.store(skip: 0, count: 60, at: 0), .stop])
        #expect(machine.position == 60)
    }

    @Test(
        "A8, A9: a body that ends before its stated end is interrupted; a body without a stated end ends the resource")
    func ends() {
        var short = Machine(offset: 0, end: 100, asked: 0)
        _ = short.chunk(count: 40, limit: .max)
        let cut = short.bodyEnded()
        #expect(cut == .interrupted(at: 40))
        var open = Machine(offset: 0, end: nil, asked: 0)
        _ = open.chunk(count: 40, limit: .max)
        let end = open.bodyEnded()
        #expect(end == .endOfResource(at: 40))
    }

    @Test("Operations at the maximum offset do not cause a crash")
    func extremes() {
        let last = Block.offsetLimit - 10
        var machine = Machine(offset: last, end: nil, asked: last)
        let actions = [machine.chunk(count: .max, limit: .max), machine.chunk(count: .max, limit: .max)]
        #expect(actions == [.store(skip: 0, count: 10, at: last), .stop])
    }
}

extension Transfer.StateMachine {
    fileprivate init(offset: Int64, end: Int64?, asked: Int64?) {
        self.init(
            offset: offset, end: end, firstStoredOffset: Self.firstStoredOffset(offset: offset, end: end, asked: asked))
    }
}

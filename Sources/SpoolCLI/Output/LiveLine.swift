import Foundation

/// Keeps one line of a terminal up to date while something goes on; writes nothing where standard error is no terminal that can.
struct LiveLine: Sendable {
    private let task: Task<Void, Never>?

    /// Starts to draw what `text` says for a number of columns, ten times a second.
    init(isShown: Bool = Output.canDraw, text: @escaping @Sendable (_ columns: Int) async -> String) {
        guard isShown else {
            task = nil
            return
        }
        task = Task {
            while !Task.isCancelled {
                Output.draw(await text(Output.columns))
                // Cancelled, the loop ends by its condition.
                try? await Task.sleep(for: .milliseconds(100))
            }
            Output.draw("")
        }
    }

    /// Wipes the line; nothing is drawn afterwards.
    func end() async {
        task?.cancel()
        await task?.value
    }
}

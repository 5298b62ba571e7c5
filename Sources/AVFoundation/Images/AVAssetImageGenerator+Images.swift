import Synchronization

extension AVAssetImageGenerator {
    /// The images of several times, in their order, made while they are taken: at most one ahead.
    ///
    /// With the task that takes them, or with the sequence, what is still being made is called off.
    public func images(for times: [CMTime]) -> Images {
        Images(series: ImageSeries(requests, currentSettings, times))
    }

    /// Images that are made while they are taken; see ``AVAssetImageGenerator/images(for:)``.
    public struct Images: AsyncSequence, AsyncIteratorProtocol, Sendable {
        /// What came of one of the times.
        public enum Element: Sendable {
            /// The image, and when it begins to show.
            case success(requestedTime: CMTime, image: CGImage, actualTime: CMTime)
            /// Why there is none.
            case failure(requestedTime: CMTime, error: any Error)

            /// The time that was asked for.
            public var requestedTime: CMTime {
                switch self {
                case .success(let requestedTime, _, _), .failure(let requestedTime, _): requestedTime
                }
            }

            /// The image.
            ///
            /// - Throws: why there is none.
            public var image: CGImage {
                get throws {
                    switch self {
                    case .success(_, let image, _): return image
                    case .failure(_, let error): throw error
                    }
                }
            }

            /// When the image begins to show.
            ///
            /// - Throws: why there is none.
            public var actualTime: CMTime {
                get throws {
                    switch self {
                    case .success(_, _, let actualTime): return actualTime
                    case .failure(_, let error): throw error
                    }
                }
            }
        }

        let series: ImageSeries

        /// The sequence itself: its images can be taken once.
        public func makeAsyncIterator() -> Images { self }

        /// The next image; nil after the last.
        public mutating func next() async -> Element? { await series.next() }
    }
}

/// Asks for images one ahead of the one that is waited for.
final class ImageSeries: Sendable {
    private struct Pending {
        var request: ImageRequest
        var outcome: ImageOutcome
    }

    private struct State {
        var times: ArraySlice<CMTime>
        var pending: [Pending] = []
        /// Once one was called off, all that follow are.
        var isCancelled = false
    }

    private let requests: ImageRequestQueue
    private let settings: ImageRequest.Settings
    private let state: Mutex<State>

    init(_ requests: ImageRequestQueue, _ settings: ImageRequest.Settings, _ times: [CMTime]) {
        self.requests = requests
        self.settings = settings
        state = Mutex(State(times: times[...]))
    }

    deinit {
        requests.cancel(state.withLock { $0.pending.map(\.request) })
    }

    func next() async -> AVAssetImageGenerator.Images.Element? {
        let (first, new, isCancelled) = state.withLock { state -> (Pending?, [ImageRequest], Bool) in
            var new: [ImageRequest] = []
            while state.pending.count < 2, let time = state.times.popFirst() {
                let outcome = ImageOutcome()
                let request = ImageRequest(time, settings) { outcome.set($0) }
                state.pending.append(Pending(request: request, outcome: outcome))
                new.append(request)
            }
            return (state.pending.isEmpty ? nil : state.pending.removeFirst(), new, state.isCancelled)
        }
        guard let first else { return nil }
        if isCancelled { requests.cancel(new) }
        do {
            let generated = try await withTaskCancellationHandler {
                requests.add(new)
                return try await first.outcome.value()
            } onCancel: { [requests] in
                requests.cancel([first.request])
            }
            return .success(requestedTime: first.request.time, image: generated.image, actualTime: generated.time)
        } catch {
            if (error as? AVError)?.code == .operationCancelled { state.withLock { $0.isCancelled = true } }
            return .failure(requestedTime: first.request.time, error: error)
        }
    }
}

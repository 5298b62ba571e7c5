import SpoolStorage

extension MediaResource {
    /// The head of the version that is there now, or, where nothing is stored or it has to be asked about, that the origin
    /// sends: it is asked for the first block then, of which no byte is waited for.
    ///
    /// - Throws: As ``MediaReader/response()``.
    package func response() async throws -> OpenedResponse {
        if let known = try await responseNow() { return known }
        return try await MediaReader(media: self, range: Self.beginning, priority: .playback, chunkSize: 1).response()
    }

    /// What is asked for where nothing but the head is wanted.
    static let beginning = MediaRange.bytes(0..<1)

    /// The same where the origin need not be asked; else nil.
    func responseNow() async throws -> OpenedResponse? { try await opened().responseNow(opening: opening) }
}

import SpoolStorage

/// Downloads that continue while the app is suspended or not running.
extension Downloads {
    /// Hands the missing ranges over to a background session of the system, for example when the app enters the
    /// background.
    ///
    /// The cache's own downloads stop, and are paused until ``takeBack(from:)``. Files that the session has received
    /// are stored first. If the download of media has not started, the first block of the media is requested, because
    /// its version and length are needed. Each missing range is then requested in parts of `chunkSize`, with the
    /// current header fields of the media's source. If these fields expire and the origin rejects a request, the app
    /// fetches the missing bytes later.
    ///
    /// In these cases, media is not handed over, and waits for ``takeBack(from:)``:
    ///
    /// - The origin did not send a strong validator or a length, or does not support byte ranges.
    /// - The response has a `Content-Encoding`, or depends on request header fields (`Vary`).
    /// - The source of the media is not recorded, and was not added in this process; see ``DownloadSet/Item/url``.
    /// - There is not enough space for the media in addition to the pinned media.
    /// - The first block could not be fetched, or the origin rejected the one-byte request that precedes the transfers.
    ///
    /// If no transfer is running when the method returns, the cache's own downloads continue. If ``isPaused`` is true,
    /// nothing is handed over. Call the method again after the system has launched the app because transfers have
    /// finished. The method then stores the received files and starts the next transfers.
    ///
    /// - Parameters:
    ///   - session: The session.
    ///   - chunkSize: The maximum size of a transfer, in bytes, rounded down to a multiple of 64 KiB, but at least 64
    ///     KiB. If a transfer is cancelled, its bytes are fetched again. The default is 8 MiB.
    ///   - maximumTransfers: The maximum number of concurrent transfers in the session. The default is 64.
    /// - Returns: The number of stored bytes, the number of started transfers, and the reasons why the other transfers
    ///   were not started.
    /// - Throws: `CacheError` with code `.closed`, or with `.storage` or `.directoryInUse` if the cache can't be
    ///   written to. `CancellationError` if the task is cancelled. Started transfers then continue.
    @discardableResult
    public func handOver(
        to session: any BackgroundTransferSession, chunkSize: Int64 = 8 << 20, maximumTransfers: Int = 64
    ) async throws -> BackgroundTransferReport {
        let exchange = BackgroundExchange(self, session)
        return try await work.exchange(on: cache.context.executor.executor(for: .background)) {
            try await exchange.handOver(chunkSize: chunkSize, maximumTransfers: maximumTransfers)
        }
    }

    /// Takes the downloads back from a background session of the system. Call this method at launch, and when the app
    /// becomes active.
    ///
    /// Transfers that have not finished are cancelled. A received file is stored if its response contains exactly the
    /// requested range of the stored version, and is otherwise discarded. The cache's own downloads then resume with
    /// the missing ranges, as with ``resume(_:)``.
    ///
    /// - Returns: The number of stored bytes, and the reasons why files were discarded.
    /// - Throws: `CacheError` with code `.closed`, or with `.storage` or `.directoryInUse` if the cache can't be
    ///   written to. `CancellationError` if the task is cancelled. Received files then stay in the session.
    @discardableResult
    public func takeBack(from session: any BackgroundTransferSession) async throws -> BackgroundTransferReport {
        let exchange = BackgroundExchange(self, session)
        return try await work.exchange(on: cache.context.executor.executor(for: .background)) {
            try await exchange.takeBack()
        }
    }
}

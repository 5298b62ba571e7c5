// Linux only, like the log itself: see `AVAssetResourceLoader.requestLog`.

extension AVURLAsset {
    /// Every loading request that was made for the asset, oldest first. Linux only.
    package var requestLog: [AVAssetResourceLoader.LoggedRequest] { resourceLoader.requestLog }

    /// Everything that the loader's delegate did against the contract, oldest first. Linux only.
    package var contractViolations: [AVAssetResourceLoader.ContractViolation] { resourceLoader.contractViolations }
}

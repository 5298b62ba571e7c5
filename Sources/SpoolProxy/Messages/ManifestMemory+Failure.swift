#if Proxy
import SpoolHTTP

extension ManifestMemory.Share {
    /// Changes the size of the share, in bytes.
    ///
    /// - Throws: `RequestFailure` with status 503 if too little memory is left. In that case, the size does not change.
    func resize(to bytes: Int) throws(RequestFailure) {
        guard resizeIfPossible(to: bytes) else {
            throw RequestFailure(503, "too many large manifests are being sent at the same time", retryAfter: 5)
        }
    }
}
#endif

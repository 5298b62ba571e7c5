/// A request to renew what was loaded before; the stand-in never makes one.
open class AVAssetResourceRenewalRequest: AVAssetResourceLoadingRequest {}

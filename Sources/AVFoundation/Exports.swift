// AVFoundation for Linux: the part of Apple's AVFoundation that plays media and loads its bytes, based on libmpv.
// Names, labels, types and documented behavior are Apple's. A resource loader delegate for Apple platforms compiles
// unchanged and serves a real player.
//
// Differences from Apple's AVFoundation:
// - There is no Objective-C on Linux. Optional delegate methods are requirements with default implementations.
//   Notifications replace key-value observing (`.AVPlayerItemStatusDidChange`,
//   `.AVPlayerItemLoadedTimeRangesDidChange`, `AVPlayer.timeControlStatusDidChangeNotification`).
// - If Apple's class would raise an exception, this module does nothing, or records the violation in a log. The
//   properties `AVAssetResourceLoader.requestLog`, `AVAssetResourceLoader.contractViolations` and `AVPlayer.headless`
//   are for this package's own targets.
// - Seeks are exact. Metadata, compositions and layers are not available. On a desktop, libmpv shows its own window.
// - A `CGImage` from `AVAssetImageGenerator` contains only a size and pixels. It cannot be drawn or saved.
//
// The folders follow the steps from a URL to playback:
// - Assets
// - Loading: requests and their contract
// - Streaming: the requests that a player sends for the reads of its demuxer
// - Playback: items, players, libmpv
// - Images: still images at given times
//
// Like Apple's AVFoundation, this module exports Foundation, Dispatch and the URL loading types.
@_exported public import Dispatch
@_exported public import Foundation

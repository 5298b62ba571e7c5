// AVFoundation for Linux: the part of Apple's AVFoundation that playing media and loading its bytes touch, with Apple's
// names, labels, types and documented behaviour, and libmpv underneath. A resource loader's delegate that is written
// for Apple's platforms compiles against it unchanged and serves a real player.
//
// Differences from Apple's:
// - There is no Objective-C on Linux: optional delegate methods are requirements with defaults, and what one would
//   observe by key path is told by notifications (`.AVPlayerItemStatusDidChange`, `.AVPlayerItemLoadedTimeRangesDidChange`,
//   `AVPlayer.timeControlStatusDidChangeNotification`).
// - Where Apple's raises an exception, nothing happens or the fact is recorded: `AVAssetResourceLoader.requestLog` and
//   `contractViolations` are for this package's own targets, like `AVPlayer.headless`.
// - Seeks are exact. There is no metadata, no composition, no layer: a desktop gets libmpv's window.
// - A `CGImage` is a size and pixels, for images of `AVAssetImageGenerator`: there is nothing to draw or write it with.
//
// Folders are the steps from a URL to sound: Assets, Loading (requests and their contract),
// Streaming (which requests a player makes for what its demuxer reads), Playback (items, players, libmpv), and from there
// to pictures of single times: Images.
//
// Like Apple's, this module brings Foundation and Dispatch along, and the URL loading types.
@_exported public import Dispatch
@_exported public import Foundation

import Foundation

// The output of `--json`, with the names and types that scripts use.

struct GetOutput: Decodable {
    var url: String
    var length: Int64?
    var range: [Int64]
    var bytes: Int64
    var bytesFromCache: Int64
    var bytesFromOrigin: Int64
    var originRequests: Int
    var seconds: Double
    var complete: Bool
}

struct MediaOutput: Decodable {
    var url: String
    var key: String
    var length: Int64?
    var contentType: String?
    var validator: String?
    var cachedBytes: Int64
    var ranges: [[Int64]]
    var complete: Bool
    var pinned: Bool
    var lastUsed: Date
}

struct VerifyOutput: Decodable, Equatable {
    var blocks: Int
    var bad: Int
    var dropped: Int
}

struct PlayOutput: Decodable {
    struct LoadingRequest: Decodable {
        var kind: String
        var offset: Int64
        var length: Int64?
        var toEnd: Bool
        var bytes: Int64
        var cancelled: Bool
    }

    var url: String
    var duration: Double?
    var ended: Bool
    var bytesFromCache: Int64
    var bytesFromOrigin: Int64
    var originRequests: Int
    var cachedRanges: [[Int64]]
    var loadingRequests: [LoadingRequest]
}

struct DemoOutput: Decodable {
    struct Third: Decodable {
        var player: String
        var ended: Bool
        var bytesFromCache: Int64
        var bytesFromOrigin: Int64
        var originRequests: Int
    }

    var first: PlayOutput
    var second: PlayOutput
    var third: Third?
}

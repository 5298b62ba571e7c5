import ArgumentParser
import Foundation
import HTTPTypes
import Spool

/// Options of the commands that may ask an origin.
struct FetchOptions: ParsableArguments {
    @Option(
        name: .customLong("header"),
        help: ArgumentHelp("A header field to send to the origin; any number of them.", valueName: "name: value"))
    var headers: [HeaderArgument] = []

    @OptionGroup var room: RoomOptions

    /// A source of the media at `url`, asked for with these header fields.
    func source(_ url: URL) -> MediaSource {
        MediaSource(url: url, fields: HTTPFields(headers.map(\.field)))
    }
}

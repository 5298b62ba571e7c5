import ArgumentParser

/// How much the cache may hold.
struct RoomOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The most that the cache may keep, such as 500MB or 2GiB; holds for the directory from now on.",
            valueName: "size"))
    var capacity: ByteCount?
}

#if !Tools
/// The command of a build without the trait `Tools`, which leaves out the packages that the command needs.
@main struct CommandUnavailable {
    static func main() {
        print("spool: built without the trait Tools; run “swift build --traits Tools” or “make build”")
    }
}
#endif

#if !Tools
import Foundation

/// The command in a build without the trait `Tools`. Such a build omits the packages that the real command needs.
@main struct CommandUnavailable {
    static func main() {
        let text = "spool was built without the trait Tools; run “swift build --traits Tools” or “make build”\n"
        FileHandle.standardError.write(Data(text.utf8))
        exit(1)
    }
}
#endif

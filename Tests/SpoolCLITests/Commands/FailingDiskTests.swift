import Foundation
import SpoolTesting
import Testing

@Suite("Full or read-only disks, and directories of other users", .timeLimit(.minutes(10)))
struct FailingDiskTests {
    private static let song = PatternBytes(seed: 1, length: 3_000_000)
    private static let other = PatternBytes(seed: 2, length: 2_000_000)

    /// Whether this process may mount a file system that is visible only to it.
    private static let canMount: Bool = {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", "unshare -m sh -c 'mount -t tmpfs -o size=1m none /mnt' 2>/dev/null"]
        do { try process.run() } catch { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }()

    @Test(
        "E59: if there is little space for a new cache, get delivers all bytes and writes one warning",
        .enabled(if: canMount, "mounting a small file system requires root, or a user namespace that allows it"))
    func littleSpace() async throws {
        try await withOrigin(["/a": OriginResource(.pattern(Self.song))]) { origin, spool in
            try FileManager.default.createDirectory(at: spool.file("disk"), withIntermediateDirectories: false)
            try Self.song.data.write(to: spool.file("song"))
            let script = """
                for size in 4 8 16 32 48 56 64 80 96 112 128 160; do
                    mount -t tmpfs -o size=${size}k,mode=0755 none disk
                    for n in 1 2; do
                        '\(SpoolProcess.executable.path)' get \(origin.url("/a").absoluteString) \
                            --cache disk/cache --output copy >out 2>err
                        echo "$size $n: $? $(cmp copy song && echo same) $(wc -l <err)"
                        rm -f copy
                    done
                    umount disk
                done
                """
            try Data(script.utf8).write(to: spool.file("script"))
            let result = try await spool.shell("unshare -m sh ./script")
            let lines = result.text.split(separator: "\n")
            #expect(lines.count == 24)
            for line in lines { #expect(line.hasSuffix(": 0 same 1"), "\(line)") }
        }
    }

    @Test(
        "E59: on a full or read-only disk, get and play deliver stored and uncached media, with one warning each",
        .enabled(if: canMount, "mounting a small file system requires root, or a user namespace that allows it"))
    func refusingDisk() async throws {
        let film = try await SampleMedia.mp3.file()
        try await withOrigin([
            "/a": OriginResource(.pattern(Self.song)), "/b": OriginResource(.pattern(Self.other)),
            "/c.mp3": OriginResource(.file(film)),
        ]) { origin, spool in
            try FileManager.default.createDirectory(at: spool.file("disk"), withIntermediateDirectories: false)
            let urls = ["/a", "/b", "/c.mp3"].map { origin.url($0).absoluteString }
            let play = "$spool play \(urls[2]) --headless --speed 100 --json"
            let script = """
                set -e
                spool='\(SpoolProcess.executable.path)'
                mount -t tmpfs -o size=6m,mode=0755 none disk
                export SPOOL_CACHE=$PWD/disk/cache
                $spool get \(urls[0]) --output first >out 2>err
                cat /dev/zero >disk/filler 2>/dev/null || true
                for state in full read-only; do
                    for n in 0 1; do
                        set -- \(urls[0]) \(urls[1]); shift $n
                        $spool get $1 --output $state-$n --json >$state-$n.json 2>$state-$n.err
                    done
                    \(play) >$state-play.json 2>$state-play.err
                    mount -o remount,ro disk
                done
                """
            try script.write(to: spool.file("script"), atomically: true, encoding: .utf8)
            let result = try await spool.shell("unshare -m sh script")
            #expect(result.status == 0, "\(result.errors)")
            func text(_ name: String) throws -> String { try String(contentsOf: spool.file(name), encoding: .utf8) }
            #expect(try text("err").isEmpty)
            for state in ["full", "read-only"] {
                #expect(try Data(contentsOf: spool.file("\(state)-0")) == Self.song.data)
                #expect(try Data(contentsOf: spool.file("\(state)-1")) == Self.other.data)
                let stored = try JSONDecoder().decode(
                    GetOutput.self, from: try Data(contentsOf: spool.file("\(state)-0.json")))
                #expect(stored.bytesFromOrigin == 0 && stored.complete)
                let played = try JSONDecoder().decode(
                    PlayOutput.self, from: try Data(contentsOf: spool.file("\(state)-play.json")))
                #expect(played.ended)
                for name in ["0", "1", "play"] {
                    let lines = try text("\(state)-\(name).err").split(separator: "\n")
                    #expect(lines.count == 1 && lines[0].hasPrefix("warning: "), "\(state) \(name): \(lines)")
                    #expect(lines[0].lowercased().contains(state == "full" ? "no space" : "read-only"), "\(lines)")
                }
            }
        }
    }

    @Test(
        "E59: in a read-only directory, preload and get --hls fail, and the errors contain the directory and the cause",
        .enabled(if: canMount, "mounting a small file system requires root, or a user namespace that allows it"))
    func readOnlyDirectory() async throws {
        let list = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n/b\n#EXT-X-ENDLIST\n"
        try await withOrigin([
            "/a": OriginResource(.pattern(Self.song)), "/b": OriginResource(.pattern(Self.other)),
            "/l.m3u8": OriginResource(.data(Data(list.utf8))),
        ]) { origin, spool in
            try FileManager.default.createDirectory(at: spool.file("disk"), withIntermediateDirectories: false)
            let (a, b, l) = (origin.url("/a"), origin.url("/b"), origin.url("/l.m3u8"))
            let script = """
                spool='\(SpoolProcess.executable.path)'
                mount -t tmpfs -o size=6m,mode=0755 none disk
                $spool get \(a) --cache disk/cache
                mount -o remount,ro disk
                for cache in disk/cache disk/new; do
                    for command in "preload --json" "preload --all --json" "get --hls"; do
                        url=\(b); [ "$command" = "get --hls" ] && url=\(l)
                        $spool $command $url --cache $cache >out 2>err
                        echo "$? $(grep -c '^error: ' err) $(grep -c '"complete":true' out) $(grep '^error: ' err)"
                    done
                done
                $spool preload \(a) --all --cache disk/cache 2>err
                echo $?
                """
            try script.write(to: spool.file("script"), atomically: true, encoding: .utf8)
            let result = try await spool.shell("unshare -m sh script")
            let lines = result.text.split(separator: "\n").dropFirst()
            #expect(lines.count == 8 && lines.last == "0", "\(result.text) \(result.errors)")
            for (line, directory) in zip(
                lines, Array(repeating: "disk/cache", count: 3) + Array(repeating: "disk/new", count: 3))
            {
                #expect(line.hasPrefix("1 1 0 error: \(b) can't be stored: “"), "\(line)")
                #expect(line.contains(directory) && line.lowercased().contains("read-only file system"), "\(line)")
                #expect(!line.contains("capacity"), "\(line)")
            }
        }
    }

    @Test(
        "E59: get and export reject a cache directory that other users can write to",
        arguments: ["get", "export"])
    func writableByOthers(command: String) async throws {
        try await withOrigin(["/a": OriginResource(.pattern(Self.song))]) { origin, spool in
            let url = origin.url("/a").absoluteString
            #expect(try await spool.run("get", url).status == 0)
            try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: spool.file("cache").path)
            let result = try await spool.run([command, url] + (command == "export" ? ["copy"] : []))
            #expect(result.status == 1 && result.complaints.count == 1)
            #expect(result.errors.contains("other users may write to it"), "\(result.errors)")
            #expect(!FileManager.default.fileExists(atPath: spool.file("copy").path))
        }
    }

    @Test(
        "E59: a cache directory that belongs to another user is rejected",
        .enabled(if: geteuid() == 0, "only root can give a directory to another user"))
    func ownedByAnother() async throws {
        let spool = try SpoolProcess()
        defer { spool.remove() }
        try FileManager.default.createDirectory(at: spool.file("cache"), withIntermediateDirectories: false)
        try FileManager.default.setAttributes([.ownerAccountID: 4711], ofItemAtPath: spool.file("cache").path)
        let result = try await spool.run("get", "http://127.0.0.1:1/a")
        #expect(result.status == 1 && result.complaints.count == 1)
        #expect(result.errors.contains("it belongs to another user (UID 4711)"), "\(result.errors)")
    }
}

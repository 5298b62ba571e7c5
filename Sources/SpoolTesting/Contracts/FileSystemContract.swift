import Foundation
package import SpoolStorage

/// The contract of every file system that the cache can use, as test cases for any implementation.
///
/// The cases do not depend on a test framework. Each case throws an error if its rule is violated, and needs its own
/// empty folder.
package enum FileSystemContract {
    /// One rule of the contract.
    package struct Case: Sendable, CustomStringConvertible {
        /// The rule, as a sentence.
        package let description: String
        /// Whether the rule applies only to real files on the machine.
        package var needsSystemFiles = false
        /// A function that checks the rule in an empty folder, and throws an error if the rule is violated.
        package let run: @Sendable (any FileSystem, _ folder: String) throws -> Void
    }

    /// A violated rule.
    package struct Violation: Error, CustomStringConvertible {
        /// A sentence that describes the violation.
        package let description: String
    }

    /// All cases.
    package static let cases: [Case] =
        StoredFileContract.cases.map { rule in
            Case(description: rule.description) { files, folder in
                try rule.run(try files.openFile(folder + "/file", .create))
            }
        } + opening + [
            Case(description: "a lock is exclusive, and ends when its file is released") { files, folder in
                let path = folder + "/lock"
                var first = try files.lockFile(path)
                try expect(first != nil, "the first attempt did not get the lock")
                try expect(try files.lockFile(path) == nil, "a second attempt also got the lock")
                try StoredFileContract.write("held", to: first, at: 0)
                try expect(
                    try StoredFileContract.text(of: files.openFile(path, .read)) == "held",
                    "the lock file can't be read while it is locked")
                first = nil
                try expect(try files.lockFile(path) != nil, "the lock was not free after its release")
            },
            Case(description: "a removed file is missing when opened again, and readable while it is open") {
                files, folder in
                let path = folder + "/file"
                let file = try files.openFile(path, .create)
                try StoredFileContract.write("kept", to: file, at: 0)
                try expect(try files.remove(path), "the file system did not find the file to remove")
                try expect(try StoredFileContract.text(of: file) == "kept", "the open file lost its bytes")
                try expect(try !files.remove(path), "the file system reported that it removed a missing file")
                try expectFailure(.ENOENT, naming: path) { _ = try files.openFile(path, .read) }
            },
            Case(description: "renaming replaces the file with the new name") { files, folder in
                try StoredFileContract.write("new", to: files.openFile(folder + "/a", .create), at: 0)
                try StoredFileContract.write("old, longer", to: files.openFile(folder + "/b", .create), at: 0)
                try files.rename(folder + "/a", to: folder + "/b")
                try expect(
                    try StoredFileContract.text(of: files.openFile(folder + "/b", .read)) == "new",
                    "the replaced file still exists")
                try expect(try files.list(folder) == ["b"], "the folder does not contain exactly the renamed file")
                try expectFailure(.ENOENT, naming: folder + "/a") { try files.rename(folder + "/a", to: folder + "/c") }
            },
            Case(description: "a folder is created with its parents, unless it exists") { files, folder in
                let path = folder + "/one/two/three"
                for _ in 0..<2 { try files.createDirectory(path) }
                _ = try files.openFile(path + "/ä ö", .create)
                try expect(try files.list(path) == ["ä ö"], "the listing of a folder does not match its contents")
                try expect(try files.list(folder + "/missing").isEmpty, "the listing of a missing folder is not empty")
                try expect(try [nil, 0o700].contains(mode(of: path)), "users other than the owner can read the folder")
                try expectFailure(.ENOTDIR, naming: path + "/ä ö") { try files.createDirectory(path + "/ä ö") }
            },
            Case(description: "attributes contain the owner and the permissions of a file") { files, folder in
                _ = try files.openFile(folder + "/file", .create)
                let file = try files.attributes(folder + "/file")
                let directory = try files.attributes(folder)
                try expect(
                    file?.permissions == 0o600 && file?.isDirectory == false, "the file is \(String(describing: file))")
                try expect(directory?.isDirectory == true, "the folder is \(String(describing: directory))")
                try expect(file?.owner == directory?.owner, "the file and its folder have different owners")
                try expect(try files.attributes(folder + "/missing") == nil, "a missing file has attributes")
                try expect(try files.attributes(folder + "/file/x") == nil, "a path below a file has attributes")
            },
            Case(description: "shared locks prevent an exclusive lock until they end") { files, folder in
                let path = folder + "/file"
                let one = try files.openFile(path, .create)
                let two = try files.openFile(path, .readWrite)
                let three = try files.openFile(path, .read)
                try expect(try one.lock(.shared), "the first shared lock was rejected")
                try expect(try three.lock(.shared), "the second shared lock was rejected")
                try expect(try !two.lock(.exclusive), "an exclusive lock was granted despite two readers")
                try expect(try one.lock(.none) && three.lock(.none), "a lock could not be released")
                try expect(try two.lock(.exclusive), "an exclusive lock was denied even though no reader holds a lock")
                try expect(try !one.lock(.shared), "a shared lock was granted despite an exclusive one")
            },
            Case(description: "free space is reported for an existing folder") { files, folder in
                let space = try files.volumeSpace(at: folder)
                try expect(space.size > 0 && (0...space.size).contains(space.free), "\(space) is not plausible")
                try expectFailure(.ENOENT, naming: folder + "/no") { _ = try files.volumeSpace(at: folder + "/no") }
            },
        ]

    private static let opening: [Case] = [
        Case(description: "a created file is empty, and only its owner can access it") { files, folder in
            let file = try files.openFile(folder + "/file", .create)
            try expect(try file.size() == 0, "the created file is not empty")
            try expect(try [nil, 0o600].contains(mode(of: folder + "/file")), "other users can read the created file")
            try StoredFileContract.write("x", to: file, at: 0)
            try expect(try files.openFile(folder + "/file", .create).size() == 1, "opening the file again emptied it")
        },
        Case(description: "a missing file causes an error that names it, unless it may be created") { files, folder in
            for access in [FileAccess.read, .readWrite] {
                try expectFailure(.ENOENT, naming: folder + "/file") {
                    _ = try files.openFile(folder + "/file", access)
                }
            }
            try expect(try files.list(folder).isEmpty, "the missing file was created")
        },
        Case(description: "a symbolic link is not followed", needsSystemFiles: true) { files, folder in
            _ = try files.openFile(folder + "/target", .create)
            try FileManager.default.createSymbolicLink(
                atPath: folder + "/link", withDestinationPath: folder + "/target")
            try expectFailure(.ELOOP, naming: folder + "/link") { _ = try files.openFile(folder + "/link", .create) }
        },
        Case(description: "a file that is opened for reading can't be written") { files, folder in
            try StoredFileContract.write("kept", to: files.openFile(folder + "/file", .create), at: 0)
            let file = try files.openFile(folder + "/file", .read)
            try expectFailure(.EBADF, naming: folder + "/file") {
                try StoredFileContract.write("lost", to: file, at: 0)
            }
            try expect(try StoredFileContract.text(of: file) == "kept", "a file opened for reading was written")
        },
        Case(description: "an empty path, or one with a NUL, is rejected") { files, folder in
            for path in [folder + "/a\0b", ""] {
                var code: CacheError.Code?
                do { _ = try files.openFile(path, .create) } catch { code = (error as? CacheError)?.code }
                try expect(code == .invalidArgument, "“\(path)” was not rejected")
            }
            try expect(try files.list(folder).isEmpty, "a file was created")
        },
    ]

    // MARK: - Helpers

    private static func expect(
        _ holds: @autoclosure () throws -> Bool, _ complaint: @autoclosure () throws -> String
    )
        throws
    {
        guard try holds() else { throw Violation(description: try complaint()) }
    }

    private static func expectFailure(
        _ code: POSIXErrorCode, naming path: String, _ body: () throws -> Void
    ) throws {
        do {
            try body()
        } catch {
            let found = error as? CacheError
            guard let found, found.code == .storage, found.posixCode == code, found.message.contains(path) else {
                throw Violation(description: "the wrong error: \(error)")
            }
            return
        }
        throw Violation(description: "no error was thrown, but \(code) was expected")
    }

    /// Returns the permissions of a file or folder on disk, or `nil` if it is not on disk, for example because it is in
    /// memory.
    private static func mode(of path: String) throws -> Int? {
        guard FileManager.default.fileExists(atPath: path) else { return nil }
        return try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }
}

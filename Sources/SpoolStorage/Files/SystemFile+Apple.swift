#if canImport(Darwin)
import ByteRanges
import Darwin
import Foundation
import Synchronization

extension SystemFile {
    /// Frees the disk space of `range`, which ends before the end of the file: `fcntl` with `F_PUNCHHOLE`.
    ///
    /// APFS requires both bounds to be multiples of 4 KiB. Bytes before the first multiple and after the last one are
    /// not freed.
    func free(_ range: Range<Int64>) throws(CacheError) {
        let grain: Int64 = 4096
        let lower = (range.lowerBound + grain - 1) / grain * grain
        let upper = range.upperBound / grain * grain
        guard lower < upper else { return }
        var hole = fpunchhole_t(fp_flags: 0, reserved: 0, fp_offset: off_t(lower), fp_length: off_t(upper - lower))
        while fcntl(descriptor, F_PUNCHHOLE, &hole) != 0 {
            guard errno == EINTR else {
                throw failure("still occupies disk space that could not be freed (\(range.inWords))")
            }
        }
    }

    /// Does nothing. The fault that this method prevents is known only on Linux.
    func disableReadAhead() {}

    /// Does nothing, because the system reads ahead.
    func prefetch(_ range: Range<Int64>) {}

    func seekData(_ offset: off_t) -> off_t { lseek(descriptor, offset, SEEK_DATA) }

    func seekHole(_ offset: off_t) -> off_t { lseek(descriptor, offset, SEEK_HOLE) }

    func recordWrite() { lastWrite.store(Self.secondsSinceStart, ordering: .relaxed) }

    private static let start = ContinuousClock.now
    private static var secondsSinceStart: Int64 { start.duration(to: .now).components.seconds }

    /// Reads bytes that were written recently, because no system call reads only from memory. Such bytes are in the
    /// unified buffer cache unless memory is low, so a `pread` of them does not wait. All other reads use
    /// ``read(into:at:)``.
    func readWithoutBlocking(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int? {
        guard Self.secondsSinceStart - lastWrite.load(ordering: .relaxed) < 30, let base = buffer.baseAddress else {
            return nil
        }
        let read = pread(descriptor, base, buffer.count, off_t(offset))
        return read > 0 ? read : nil
    }
}

/// Waits until all data that was written to a file or directory has reached the device.
///
/// After `fsync`, the data may still be in the drive's cache, where a loss of power destroys it. `F_FULLFSYNC` also
/// empties that cache. Some volumes, such as network volumes, support only `fsync`. Source: `fsync(2)`, `fcntl(2)`.
///
/// - Returns: 0, or -1 with the cause in `errno`.
func synchronizeToDevice(_ descriptor: Int32) -> Int32 {
    fcntl(descriptor, F_FULLFSYNC) == 0 ? 0 : fsync(descriptor)
}

/// Returns the number of bytes that the system offers for content that can be fetched again; `nil` if it is unknown.
///
/// The number includes the content of other apps that the system can purge, and excludes a reserve of the system.
/// Volumes without that feature, such as external volumes, report 0. Source:
/// `volumeAvailableCapacityForOpportunisticUsage`.
func opportunisticSpace(at path: String) -> Int64? {
    #if os(tvOS) || os(watchOS)
    return nil
    #else
    // If the volume does not report the number, its free space applies.
    let values = try? URL(fileURLWithPath: path, isDirectory: true)
        .resourceValues(forKeys: [.volumeAvailableCapacityForOpportunisticUsageKey])
    guard let space = values?.volumeAvailableCapacityForOpportunisticUsage, space > 0 else { return nil }
    return space
    #endif
}

extension FileProtection {
    /// The system's protection. It excludes a cache's directory from backups, because its media can be fetched again,
    /// and sets protection classes.
    ///
    /// The class of the directory and its files is "complete until first user authentication". Playback then continues
    /// while the screen is locked. macOS has no protection classes. Source: `NSURLIsExcludedFromBackupKey`,
    /// `FileProtectionType.completeUntilFirstUserAuthentication`.
    package static let system = FileProtection(
        protectDirectory: { path in
            var failures: [CacheError] = []
            func attempt(_ failure: String, _ body: () throws -> Void) {
                do {
                    try body()
                } catch {
                    let cause = error.localizedDescription
                    failures.append(CacheError(.storage, "“\(path)” \(failure): \(cause)", underlying: error))
                }
            }
            attempt("could not be excluded from backups") {
                var url = URL(fileURLWithPath: path, isDirectory: true)
                var values = URLResourceValues()
                values.isExcludedFromBackup = true
                try url.setResourceValues(values)
            }
            #if !os(macOS)
            attempt("could not be given its protection class") {
                try FileManager.default.setAttributes(
                    [.protectionKey: FileProtectionType.completeUntilFirstUserAuthentication], ofItemAtPath: path)
            }
            #endif
            return failures
        },
        protectFile: { descriptor, _ in
            #if !os(macOS)
            // PROTECTION_CLASS_C. Without it, the file has its directory's class; see `protectFile` for failures.
            _ = fcntl(descriptor, F_SETPROTECTIONCLASS, 3)
            #endif
        })
}
#endif

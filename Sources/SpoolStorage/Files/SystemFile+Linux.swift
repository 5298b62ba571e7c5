#if os(Linux) || os(Android)
import ByteRanges
import CSystemFiles
import Foundation
import Synchronization

extension SystemFile {
    /// Frees the disk space of `range`, which ends before the end of the file.
    func free(_ range: Range<Int64>) throws(CacheError) {
        while c_system_files_punch(descriptor, off_t(range.lowerBound), off_t(range.upperBound - range.lowerBound)) != 0
        {
            guard errno == EINTR else {
                throw failure("still occupies disk space that could not be freed (\(range.inWords))")
            }
        }
    }

    /// Disables read-ahead, which may use large parts of the page cache. Bytes that are being sent could then become
    /// zeros, as with a large write; see ``write(_:at:)``. This happens on ext4 and XFS. ``prefetch(_:)`` replaces
    /// read-ahead. If the file system rejects this, nothing changes.
    func disableReadAhead() { _ = posix_fadvise(descriptor, 0, 0, POSIX_FADV_RANDOM) }

    /// Starts to read bytes into the page cache. Unlike read-ahead, this method always uses pages of the smallest size.
    func prefetch(_ range: Range<Int64>) {
        // One call reads only as much as the disk accepts in one request, which is often 128 KiB.
        for start in stride(from: range.lowerBound, to: range.upperBound, by: 128 << 10) {
            let count = min(range.upperBound - start, 128 << 10)
            _ = posix_fadvise(descriptor, off_t(start), off_t(count), POSIX_FADV_WILLNEED)
        }
    }

    func seekData(_ offset: off_t) -> off_t { c_system_files_next_data(descriptor, offset) }

    func seekHole(_ offset: off_t) -> off_t { c_system_files_next_hole(descriptor, offset) }

    func recordWrite() {}

    func readWithoutBlocking(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int? {
        guard canReadNow.load(ordering: .relaxed) else { return nil }
        var count = 0
        while count < buffer.count, let base = buffer.baseAddress {
            let read = c_system_files_read_now(
                descriptor, base + count, buffer.count - count, off_t(offset) + off_t(count))
            if read > 0 {
                count += read
            } else if read < 0, errno == EINTR {
                continue
            } else {
                if read < 0, errno != EAGAIN { canReadNow.store(false, ordering: .relaxed) }
                break
            }
        }
        return count > 0 ? count : nil
    }
}

/// Waits until all data that was written to a file or directory has reached the device. The function uses `fsync`,
/// which also empties the drive's cache.
///
/// - Returns: 0, or -1 with the cause in `errno`.
func synchronizeToDevice(_ descriptor: Int32) -> Int32 { fsync(descriptor) }

/// Returns `nil`, because Linux does not reserve space for content that can be fetched again.
func opportunisticSpace(at path: String) -> Int64? { nil }

extension FileProtection {
    /// The system's protection, which does nothing. Linux supports neither protection classes nor an exclusion from
    /// backups, so the modes 0600 and 0700 are the only protection.
    package static let system = FileProtection(protectDirectory: { _ in [] }, protectFile: { _, _ in })
}
#endif

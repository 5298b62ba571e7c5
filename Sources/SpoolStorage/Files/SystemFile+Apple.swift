#if canImport(Darwin)
import Darwin
import Foundation
import Synchronization

extension SystemFile {
    /// Frees the disk space of `range`, which ends before the end of the file: `fcntl` with `F_PUNCHHOLE`.
    ///
    /// APFS wants both bounds on its 4 KiB blocks; what of `range` is outside of them is kept.
    func free(_ range: Range<Int64>) throws(CacheError) {
        let grain: Int64 = 4096
        let lower = (range.lowerBound + grain - 1) / grain * grain
        let upper = range.upperBound / grain * grain
        guard lower < upper else { return }
        var hole = fpunchhole_t(fp_flags: 0, reserved: 0, fp_offset: off_t(lower), fp_length: off_t(upper - lower))
        while fcntl(descriptor, F_PUNCHHOLE, &hole) != 0 {
            guard errno == EINTR else { throw failure("could not give back \(range)") }
        }
    }

    func seekData(_ offset: off_t) -> off_t { lseek(descriptor, offset, SEEK_DATA) }

    func seekHole(_ offset: off_t) -> off_t { lseek(descriptor, offset, SEEK_HOLE) }

    func noteWrite() { lastWrite.store(Self.uptime, ordering: .relaxed) }

    private static var uptime: Int64 { Int64(ProcessInfo.processInfo.systemUptime) }

    /// There is no call that reads from memory only. Bytes of a file that was written a moment ago are in the unified
    /// buffer cache unless memory is short, and a plain `pread` of them does not wait; all others are left to
    /// ``read(into:at:)``.
    func readNow(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int? {
        guard Self.uptime - lastWrite.load(ordering: .relaxed) < 30, let base = buffer.baseAddress else { return nil }
        let read = pread(descriptor, base, buffer.count, off_t(offset))
        return read > 0 ? read : nil
    }

    /// Readable once the device has been unlocked after starting, so that audio plays on with the screen locked.
    static func protect(_ descriptor: Int32, path: String) throws(CacheError) {
        #if !os(macOS)
        // PROTECTION_CLASS_C, "complete until first user authentication": NSFileProtection's own call, by descriptor.
        guard fcntl(descriptor, F_SETPROTECTIONCLASS, 3) == 0 || errno == ENOTSUP || errno == EINVAL else {
            throw .system("could not be given its protection class", path: path, errno: errno)
        }
        #endif
    }

    /// As for files, and left out of backups: what is here can be fetched again.
    static func protectDirectory(_ path: String) throws(CacheError) {
        do {
            var url = URL(fileURLWithPath: path, isDirectory: true)
            var values = URLResourceValues()
            values.isExcludedFromBackup = true
            try url.setResourceValues(values)
            #if !os(macOS)
            try FileManager.default.setAttributes(
                [.protectionKey: FileProtectionType.completeUntilFirstUserAuthentication], ofItemAtPath: path)
            #endif
        } catch {
            throw CacheError(.storage, "“\(path)” could not be left out of backups", underlying: error)
        }
    }
}
#endif

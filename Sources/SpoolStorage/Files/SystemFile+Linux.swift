#if os(Linux) || os(Android)
import CSystemFiles
import Foundation
import Synchronization

extension SystemFile {
    /// Frees the disk space of `range`, which ends before the end of the file.
    func free(_ range: Range<Int64>) throws(CacheError) {
        while c_system_files_punch(descriptor, off_t(range.lowerBound), off_t(range.upperBound - range.lowerBound)) != 0
        {
            guard errno == EINTR else { throw failure("could not give back \(range)") }
        }
    }

    func seekData(_ offset: off_t) -> off_t { c_system_files_next_data(descriptor, offset) }

    func seekHole(_ offset: off_t) -> off_t { c_system_files_next_hole(descriptor, offset) }

    func noteWrite() {}

    func readNow(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int? {
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

    /// Nothing to do: the mode 0600 is all the protection there is.
    static func protect(_ descriptor: Int32, path: String) throws(CacheError) {}

    /// Nothing to do: the mode 0700 is all the protection there is.
    static func protectDirectory(_ path: String) throws(CacheError) {}
}
#endif

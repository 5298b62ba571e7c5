#if os(Linux) || os(Android)
import CFileHoles
import Foundation

extension SystemFile {
    /// Frees the disk space of `range`, which ends before the end of the file.
    func free(_ range: Range<Int64>) throws(CacheError) {
        while c_file_holes_punch(descriptor, off_t(range.lowerBound), off_t(range.upperBound - range.lowerBound)) != 0 {
            guard errno == EINTR else { throw failure("could not give back \(range)") }
        }
    }

    /// Nothing to do: the mode 0600 is all the protection there is.
    static func protect(_ descriptor: Int32, path: String) throws(CacheError) {}

    /// Nothing to do: the mode 0700 is all the protection there is.
    static func protectDirectory(_ path: String) throws(CacheError) {}
}
#endif

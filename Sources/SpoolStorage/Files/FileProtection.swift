/// The platform's attributes for a cache's directory and files: the data protection class and the exclusion from
/// backups.
///
/// It creates and opens nothing, and a failure never makes a directory or file unusable: some volumes and simulators
/// reject these attributes. Tests replace ``system`` with a recorder, because Linux has no such attributes.
package struct FileProtection: Sendable {
    /// Sets the attributes of a cache's directory, and returns the errors of those that could not be set.
    package var protectDirectory: @Sendable (_ path: String) -> [CacheError]
    /// Sets the attributes of a file that has just been opened to be written.
    ///
    /// It returns no error. A volume that rejects the attributes of a file rejects those of the directory, too, and the
    /// cache reports that once, when it is opened.
    package var protectFile: @Sendable (_ descriptor: Int32, _ path: String) -> Void

    /// Creates a protection that calls these closures.
    package init(
        protectDirectory: @escaping @Sendable (_ path: String) -> [CacheError],
        protectFile: @escaping @Sendable (_ descriptor: Int32, _ path: String) -> Void
    ) {
        self.protectDirectory = protectDirectory
        self.protectFile = protectFile
    }
}
